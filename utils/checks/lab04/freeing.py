"""In the making."""

from typing import Any


def verify(answer: Any) -> str:
    return "in the making."
