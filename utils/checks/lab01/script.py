"""01.script: the loop as a program under `python -m torch.distributed.run`.

The card gives the program's beginning: rank r draws its own weights with seed 7 + r and its own samples with seed
100 + r, to which `watched` adds a shift of that rank's, so that no rank could compute the answer alone. What the ranks
did at each step is judged in `script_steps`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import torch

from utils.checks.lab01.script_steps import RANKS, SAMPLES, STEPS, judge_steps, same, train_alone
from utils.checks.lab01.torchrun import Finished, run_program
from utils.checks.verdict import Mistake, NotBegun
from utils.checks.waiting import judge_ops

LOSS_DIGITS = 4


def verify(answer: str) -> str:
    _refuse_before_running(answer)
    with TemporaryDirectory(prefix="script-") as folder:
        name = f"weights-{token_hex(4)}.pt"  # a name that the program can only have from its argument
        finished = run_program(answer, Path(folder), RANKS, name)
        judge_ops([each.ops for each in finished.ranks])
        final = judge_steps([each.steps for each in finished.ranks])
        weights = _stored(Path(folder) / name)
    _judge_stored(weights, final)
    _judge_lines(finished)
    if any(finished.stored_by[1:]) or finished.stored_by != (0,):
        who = f"{len(finished.stored_by)} ranks store them, over each other in the same file"
        if 0 not in finished.stored_by:
            who = f"rank {finished.stored_by[0]} stores them, not rank 0"
        raise Mistake(f"the weights are right, but {who}: put `if rank == 0:` in front of `torch.save`.")
    return (
        f"on {RANKS} ranks rank 0 stores the weights of {STEPS} steps on all {RANKS * SAMPLES} samples, each rank on "
        f"its own {SAMPLES}, within 1e-5 of a single process's, and alone prints the loss over all of them."
    )


def _refuse_before_running(answer: str) -> None:
    try:
        tree = ast.parse(answer)
    except SyntaxError as error:
        raise Mistake(f"line {error.lineno} of the program is not Python: {error.msg}.") from None
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    names = [node.func if isinstance(node, ast.Call) else node for node in raised]
    if not tree.body or any(isinstance(name, ast.Name) and name.id == "NotImplementedError" for name in names):
        raise NotBegun("write the program's lines in place of its `raise NotImplementedError`.")


def _stored(file: Path) -> dict[str, torch.Tensor]:
    others = sorted(each.name for each in file.parent.glob("*.pt"))
    if not file.exists() and others:
        raise Mistake(
            f"the program stores in `{others[0]}`, whatever its argument: the file's name is `sys.argv[1]`, another "
            "one each time."
        )
    if not file.exists():
        raise Mistake("the program ends without storing the weights in the file that `sys.argv[1]` names.")
    try:
        weights = torch.load(file, weights_only=True)
    except Exception as error:
        if "Weights only load failed" in str(error):
            raise Mistake(
                "the stored file holds more than tensors: store `model.state_dict()`, not the model."
            ) from None
        raise Mistake(f"the stored file is none that `torch.load` reads ({type(error).__name__}).") from None
    if not isinstance(weights, dict) or weights.keys() != {"weight", "bias"}:
        raise Mistake("the stored file is not `model.state_dict()`: it should hold `weight` and `bias`.")
    return weights


def _judge_stored(weights: dict[str, torch.Tensor], final: list[list[torch.Tensor]]) -> None:
    """`final`: by rank, weight and bias after its last step."""
    stored = [weights["weight"], weights["bias"]]
    if same(stored, final[0]):
        return
    if same(stored, [sum(each) / RANKS for each in zip(*final, strict=True)]):
        raise Mistake("the stored weights are the mean of the ranks' last weights: average the gradients at each step.")
    raise Mistake(
        "each step is right, but the stored weights are not those after the last one: does something change them in "
        "between, or is another model stored?"
    )


def _judge_lines(finished: Finished) -> None:
    losses = train_alone().losses
    by_rank = [_losses(text) for text in finished.printed]
    if by_rank[0] and any(by_rank[1:]):
        raise Mistake(f"the weights are right, but all {RANKS} ranks print: put `if rank == 0:` in front.")
    if len(by_rank[0]) != STEPS:
        raise Mistake(
            f"the weights are right, but rank 0 prints {len(by_rank[0])} lines `loss 0.1234`; it should print one a "
            f"step, {STEPS} in all."
        )
    tolerance = 2 * 10.0**-LOSS_DIGITS
    if any(abs(got - wanted) > tolerance for got, wanted in zip(by_rank[0], losses, strict=True)):
        raise Mistake(
            f"the weights are right, but the losses printed are not the mean over both ranks: the first is "
            f"{by_rank[0][0]:.{LOSS_DIGITS}f}, the mean {losses[0]:.{LOSS_DIGITS}f}."
        )


def _losses(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"^loss\s+(-?\d+(?:\.\d+)?)\s*$", text, re.MULTILINE)]
