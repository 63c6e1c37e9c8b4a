"""`python -m utils plan MODEL --gpus N …`: every strategy for a training job, what fits, and which to take."""

from __future__ import annotations

import argparse
import json
import sys


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options; what is left out is as for `theory.planner.plan`."""
    parser.add_argument("model", metavar="MODEL", help="a preset, such as Llama-3-8B")
    parser.add_argument("--gpus", type=int, required=True, help="in all")
    parser.add_argument("--gpus-per-node", type=int, help="of a node; 8, or all where there are fewer")
    parser.add_argument("--gpu", default="H100 80GB", help="its type, such as 'A100 80GB' or H200")
    parser.add_argument("--memory", type=float, metavar="GB", help="of one GPU; its type's if left out")
    parser.add_argument("--network", type=float, default=3200, metavar="GBIT", help="Gbit/s of a node to the others")
    parser.add_argument("--inside", type=float, metavar="GB", help="GB/s of a GPU one way inside its node")
    parser.add_argument("--sequence", type=int, default=4096, help="tokens")
    parser.add_argument("--global-batch", type=int, help="sequences of a step; one for each GPU if left out")
    parser.add_argument("--reserve", type=float, default=0.1, help="share of the memory that is kept free")
    parser.add_argument("--precision", choices=("bf16", "fp8"), default="bf16", help="of the layers' matrices")
    parser.add_argument("--json", action="store_true", help="everything as JSON")
    parser.epilog = "Exit status: 0 if something fits, 1 if nothing does, 2 for bad input."
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the plan; status 1 if nothing fits, 2 and one sentence for bad input."""
    from utils.theory.planner import plan
    from utils.theory.planner.ask import check_range

    try:
        if options.memory is not None:
            check_range("memory", options.memory, options.memory, (0.1, 1e4), "a GPU's memory in GB", "80")
        found = plan(
            options.model,
            options.gpus,
            options.gpus_per_node,
            options.gpu,
            None if options.memory is None else options.memory * 1e9,
            options.network,
            options.inside,
            options.sequence,
            options.global_batch,
            options.reserve,
            options.precision,
        )
    except (KeyError, ValueError) as error:
        print(f"python -m utils plan: {_as_options(str(error.args[0]))}", file=sys.stderr)
        return 2
    print(json.dumps(found.as_json(), indent=2) if options.json else repr(found))
    return 0 if found.best else 1


def _as_options(sentence: str) -> str:
    """The sentence for who typed a command: options by their names, and the models themselves."""
    from utils.theory.models import PRESETS

    sentence = sentence.replace("the names are those of list(PRESETS)", f"choose one of {', '.join(PRESETS)}")
    for name in ("global_batch", "gpus_per_node"):
        sentence = sentence.replace(name, f"--{name.replace('_', '-')}")
    return sentence
