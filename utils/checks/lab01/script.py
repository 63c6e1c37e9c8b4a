"""01.script: the loop as a program under `python -m torch.distributed.run`.

The card gives the program's beginning: rank r draws its own weights with seed 7 + r and its own samples with seed
100 + r, so that no rank could compute the answer alone. `simulate` repeats it in one process, with or without each
mistake.
"""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import torch
from torch import nn
from torch.nn.functional import mse_loss

from utils.checks.lab01.torchrun import SEED_SHIFT, Finished, run_program
from utils.checks.verdict import Mistake, NotBegun

RANKS, STEPS, SAMPLES, FEATURES = 2, 5, 24, 6
LOSS_DIGITS = 4
FIRST_SEED = 7  # rank 0's; not 0, so that drawing anew from a common seed does not give rank 0's weights by chance


@dataclass(frozen=True)
class Outcome:
    """Rank 0's final weights by name, the losses to print, one a step, and each step's own gradients by rank."""

    weights: dict[str, torch.Tensor]
    losses: tuple[float, ...]
    local: tuple[list[list[torch.Tensor]], ...] = ()


def verify(answer: str) -> str:
    _refuse_before_running(answer)
    with TemporaryDirectory(prefix="script-") as folder:
        name = f"weights-{token_hex(4)}.pt"  # a name that the program can only have from its argument
        finished = run_program(answer, Path(folder), RANKS, name)
        weights = _stored(Path(folder) / name)
    right = simulate()
    _judge_weights(weights, right)
    _judge_gradients(finished, right)
    _judge_lines(finished, right)
    if any(finished.stored_by):
        who = f"{len(finished.stored_by)} ranks store them, over each other in the same file"
        if 0 not in finished.stored_by:
            who = f"rank {finished.stored_by[0]} stores them, not rank 0"
        raise Mistake(f"the weights are right, but {who}: put `if rank == 0:` in front of `torch.save`.")
    return (
        f"on {RANKS} ranks rank 0 stores the weights of {STEPS} steps on all {RANKS * SAMPLES} samples, within 1e-5 of "
        "a single process's, and alone prints the loss over all of them."
    )


def simulate(broadcast: bool = True, average: bool = True, times: float = 1.0, redrawn: int | None = None) -> Outcome:
    """The program in one process, `times` the averaged gradient; without a part where a flag is False.

    `redrawn`: every rank draws its weights anew with this seed, to which the watched program adds its rank's shift.
    """
    models = []
    for rank in range(RANKS):
        first = FIRST_SEED + rank if redrawn is None else redrawn
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(first + SEED_SHIFT * rank)
            models.append(nn.Linear(FEATURES, 1))
    if broadcast:
        models = [copy.deepcopy(models[0]) for _ in models]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    losses, local = [], []
    for _ in range(STEPS):
        for model in models:
            model.zero_grad()
        parts = [mse_loss(model(x), y) for model, (x, y) in zip(models, map(samples_of, range(RANKS)), strict=True)]
        sum(parts).backward()
        local.append([[p.grad.clone() for p in model.parameters()] for model in models])
        if average:
            for same in zip(*(model.parameters() for model in models), strict=True):
                mean = sum(p.grad for p in same) * (times / RANKS)
                for p in same:
                    p.grad = mean.clone()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(sum(parts).item() / RANKS)
    return Outcome({name: p.detach() for name, p in models[0].named_parameters()}, tuple(losses), tuple(local))


def samples_of(rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What the card's first lines draw on that rank: inputs (SAMPLES, FEATURES), targets (SAMPLES, 1)."""
    generator = torch.Generator().manual_seed(100 + rank)
    return torch.randn(SAMPLES, FEATURES, generator=generator), torch.randn(SAMPLES, 1, generator=generator)


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


def _judge_weights(weights: dict[str, torch.Tensor], right: Outcome) -> None:
    if _same(weights, right.weights):
        return
    suspects = {
        "the gradients are not averaged: rank 0 has trained on its own samples alone.": simulate(average=False),
        "the ranks start from different weights: rank 0's are not broadcast.": simulate(broadcast=False),
        f"the gradients are summed, not averaged: every one is {RANKS}.0 times too large.": simulate(times=RANKS),
    }
    suspects[
        f"every rank draws its weights from the seed {FIRST_SEED} and none are sent: another machine, or another "
        "release of torch, may draw others from it (here every rank does). Broadcast rank 0's."
    ] = simulate(broadcast=False, redrawn=FIRST_SEED)
    for seed in (0, 1, 42):
        lost = f"every rank draws new weights from the seed {seed}, so that rank 0's are lost: broadcast those it has."
        if any(_same(weights, simulate(sent, redrawn=seed).weights) for sent in (True, False)):
            raise Mistake(lost)
    for diagnosis, outcome in suspects.items():
        if _same(weights, outcome.weights):
            raise Mistake(diagnosis)
    off = max((weights[name] - wanted).abs().max().item() for name, wanted in right.weights.items())
    raise Mistake(
        f"the stored weights are not those of {STEPS} steps on all ranks' samples: they differ by up to {off:.2g}."
    )


def _judge_gradients(finished: Finished, right: Outcome) -> None:
    """Raise Mistake if the optimizer was given a rank's own gradients, which the weights do not show under SGD.

    A program that updates its weights by hand calls no optimizer, and is judged by its weights alone.
    """
    for rank, steps in enumerate(finished.gradients):
        for gradients, local in zip(steps, right.local, strict=False):
            mean = [sum(same) / RANKS for same in zip(*local, strict=True)]
            if _alike(gradients, local[rank]) and not _alike(gradients, mean):
                raise Mistake(
                    f"at `optimizer.step()` rank {rank} has the gradients of its own samples: it is the weights that "
                    "are averaged, after the step. With SGD that comes to the same, with Adam it does not. Average the "
                    "gradients, before the step."
                )


def _alike(got: list[torch.Tensor | None], wanted: list[torch.Tensor]) -> bool:
    return len(got) == len(wanted) and all(
        g is not None and g.shape == w.shape and torch.allclose(g, w, rtol=1e-4, atol=1e-6)
        for g, w in zip(got, wanted, strict=True)
    )


def _same(weights: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> bool:
    return all(
        weights[name].shape == w.shape and torch.allclose(weights[name], w, rtol=1e-5, atol=1e-6)
        for name, w in wanted.items()
    )


def _judge_lines(finished: Finished, right: Outcome) -> None:
    by_rank = [_losses(text) for text in finished.printed]
    if by_rank[0] and any(by_rank[1:]):
        raise Mistake(f"the weights are right, but all {RANKS} ranks print: put `if rank == 0:` in front.")
    if len(by_rank[0]) != STEPS:
        raise Mistake(
            f"the weights are right, but rank 0 prints {len(by_rank[0])} lines `loss 0.1234`; it should print one a "
            f"step, {STEPS} in all."
        )
    tolerance = 2 * 10.0**-LOSS_DIGITS
    if any(abs(got - wanted) > tolerance for got, wanted in zip(by_rank[0], right.losses, strict=True)):
        raise Mistake(
            f"the weights are right, but the losses printed are not the mean over both ranks: the first is "
            f"{by_rank[0][0]:.{LOSS_DIGITS}f}, the mean {right.losses[0]:.{LOSS_DIGITS}f}."
        )


def _losses(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"^loss\s+(-?\d+(?:\.\d+)?)\s*$", text, re.MULTILINE)]
