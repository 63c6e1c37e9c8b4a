"""Small notebooks, written where a test wants them."""

import json


def write_notebook(path, *cells):
    """A notebook of these code cells."""
    path.write_text(
        json.dumps(
            {
                "nbformat": 4,
                "nbformat_minor": 5,
                "metadata": {},
                "cells": [
                    {
                        "cell_type": "code",
                        "id": f"cell-{number}",
                        "metadata": {},
                        "outputs": [],
                        "execution_count": None,
                        "source": source,
                    }
                    for number, source in enumerate(cells)
                ],
            }
        )
    )
    return path


SETUP = """
import json, os, time
from dataclasses import dataclass
import torch, torch.distributed as dist
from utils import Cluster, launch
from utils.runtime.errors import LaunchError

def size():
    return dist.get_world_size()
"""
