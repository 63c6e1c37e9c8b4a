"""07.train: a job that goes on after a death as if nothing had happened, from one checkpoint of all its state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from utils.checks.lab07.attempts import Attempt, Scenario, attempts
from utils.checks.lab07.job import Snapshot
from utils.checks.verdict import Mistake, NotBegun
from utils.runtime.jobs.faults import Kill

FAR = 1e-9  # in float64, of weights of about 1
UNDISTURBED = Scenario("undisturbed", 2)
WRITER = Scenario("rank 1 killed while it writes", 2, (Kill(1, 5, saving=True),))
EXCHANGES = tuple(
    Scenario(
        f"a rank killed right after it has emptied, removed or renamed {which}",
        2,
        (Kill(0, 0, saving=True),),
        exchanging=number,
    )
    for number, which in enumerate(("an old file", "a second old file", "a third old file"), start=1)
)
SCENARIOS = (
    Scenario("rank 1 killed after 10 steps", 2, (Kill(1, 10),)),
    Scenario(
        "rank 0 of 3 killed while it writes, then rank 2 after 7 steps",
        3,
        (Kill(0, 5, saving=True), Kill(2, 7, attempt=1)),
        steps=9,
        every=3,
    ),
)


def verify(answer: Any) -> str:
    disturbed, wanted = attempts(answer, WRITER)
    alone = disturbed[0]  # if rank 1 writes nothing, nobody died
    if len(disturbed) > 1:
        (alone,), wanted = attempts(answer, UNDISTURBED)
    judge_undisturbed(alone, wanted, UNDISTURBED)
    judge_disturbed(disturbed, wanted, WRITER)
    for scenario in SCENARIOS + EXCHANGES[: alone.exchanged]:
        judge_disturbed(*attempts(answer, scenario), scenario)
    return (
        "on 2 and 3 ranks, killed by SIGKILL after 7 and 10 steps and in the middle of writing, it goes on from the "
        "last checkpoint with weights, moments, learning rate, each rank's place in its data and random state; at most "
        "`every` steps are lost, and the final weights are those of the undisturbed job, within 1e-9."
    )


def judge_undisturbed(got: Attempt, wanted: Attempt, scenario: Scenario) -> None:
    """In the notebook: raise Mistake unless without a death it is the job, and no two ranks write the same file."""
    if got.error:
        raise got.error
    for rank, (reached, snapshots) in enumerate(zip(got.reached, got.snapshots, strict=True)):
        if not snapshots:
            raise Mistake(f"your function does no step: call `job.step(next(job.data))` {scenario.steps} times.")
        if not reached:
            raise Mistake("your function never calls `reached(step)`: call it at the begin of each step.")
        if reached != tuple(range(scenario.steps)) or len(snapshots) != scenario.steps:
            raise Mistake(
                f"of {scenario.steps} steps rank {rank} does {len(snapshots)}, and calls `reached` with "
                f"{_few(reached)}: call it at the begin of each step with the number of steps that are done, 0 to "
                f"{scenario.steps - 1}."
            )
        for mine, right in zip(snapshots, wanted.snapshots[rank], strict=True):
            if other := _differs(mine, right):
                raise Mistake(
                    f"without any death {other} differs at step {mine.step}: feed `next(job.data)`, in order."
                )
    if not got.files:
        raise Mistake("no checkpoint is in the folder at the end: write one after every `every` steps.")
    _judge_files(got, scenario)


def _judge_files(got: Attempt, scenario: Scenario) -> None:
    writers: dict[tuple[int, str], list[int]] = {}
    for rank, saved in enumerate(got.saved):
        for save in saved:
            writers.setdefault(save, []).append(rank)
    for (_, file), ranks in writers.items():
        if len(set(ranks)) > 1:
            raise Mistake(
                f"rank {ranks[0]} and rank {ranks[1]} write the same file, `{file}`: what is in it is chance, and each "
                "rank's own place in the data and random state is lost. Let one rank write, with what the others gave "
                "it, or give each a file of its own."
            )
    moments = sorted({step for step, _ in writers})
    if len(moments) > scenario.steps // scenario.every + 2:
        raise Mistake(
            f"checkpoints are written after {_few(moments)} steps, and `every` is {scenario.every}: each one stops the "
            "training for as long as it takes."
        )


def judge_disturbed(tried: Sequence[Attempt], wanted: Attempt, scenario: Scenario) -> None:
    """Raise Mistake, naming what a restarted job has lost, or what it remembers wrongly."""
    for before, after in pairwise(tried):
        try:
            _judge_restart(before, after, wanted, scenario)
        except Mistake as mistake:
            raise Mistake(f"{scenario.name}: {mistake}") from None
    last = tried[-1]
    if last.error:
        raise last.error
    ends = wanted.final
    for rank, weights in enumerate(last.final):
        if off := _apart(weights, ends[rank]):
            raise Mistake(
                f"{scenario.name}: rank {rank}'s final weights differ from the undisturbed job's by {off:.1g}."
            )


def _judge_restart(before: Attempt, after: Attempt, wanted: Attempt, scenario: Scenario) -> None:
    if isinstance(after.error, NotBegun):
        raise after.error
    starts = [snapshots[0].step if snapshots else None for snapshots in after.snapshots]
    firsts = [reached[0] if reached else None for reached in after.reached]
    if after.error and None in firsts:
        raise _not_loaded(before, after)
    if len(set(firsts)) > 1 or len(set(starts)) > 1:
        raise Mistake(
            f"rank 0 goes on from step {firsts[0]}, another from {next(f for f in firsts if f != firsts[0])}: their "
            "checkpoints are not of the same step. A checkpoint counts when *all* ranks have written theirs; or one "
            "rank writes for all."
        )
    first = firsts[0]
    if first is None:
        raise Mistake("after the restart no step is done, and steps are missing: go on from the checkpoint's step.")
    done = max(step for reached in before.reached for step in reached)
    if done - first > scenario.every:
        raise Mistake(_lost(before, done, first, scenario))
    for rank, snapshots in enumerate(after.snapshots):
        if not snapshots:
            raise after.error or Mistake(f"after the restart rank {rank} does no step.")
        _judge_state(rank, snapshots[0], first, wanted)
    for rank, snapshots in enumerate(after.snapshots):
        for mine in snapshots[1:]:
            if mine.step >= scenario.steps:
                raise Mistake(
                    f"after the restart more than the {scenario.steps} steps are done: go on *until* `steps`, not for "
                    "as many again."
                )
            if other := _differs(mine, wanted.snapshots[rank][mine.step]):
                raise Mistake(f"after the restart {other} differs on rank {rank} at step {mine.step}.")
    if after.error:
        raise after.error


def _not_loaded(before: Attempt, after: Attempt) -> Mistake:
    """Why no step comes after a restart. That a whole checkpoint can be read another scenario has shown by then."""
    if before.died and before.died.saving:
        return Mistake(
            "the only checkpoint is half written, and cannot be read: the rank died in the middle, and the old one was "
            "gone already. Write to a file of another name, then `os.replace` it: that is done or not done."
        )
    said = re.sub(r"\x1b\[[0-9;]*m", "", str(after.error))  # torch writes some words in bold
    if "Weights only load failed" in said:
        return Mistake(
            "after the restart `torch.load` refuses the checkpoint: it opens tensors, numbers, text, lists and dicts. "
            "Store `state_dict()`s, not objects."
        )
    return Mistake(f"after the restart {said}")


def _lost(before: Attempt, done: int, first: int, scenario: Scenario) -> str:
    lost = (
        f"after {done} steps the job goes on from step {first}: {done - first} steps are lost, and at most "
        f"{scenario.every} may be."
    )
    if not before.files:
        return f"{lost} No checkpoint was in the folder."
    whole = [file for file in before.files if file != before.half]
    if not whole:
        return (
            f"{lost} What is there ({before.half}) is half written, and the old one was gone already: write to another "
            "name, then `os.replace`."
        )
    if scenario.exchanging:
        return (
            f"{lost} For a moment the old checkpoint is gone, and the new one not in its place: let `os.replace` put "
            "it there, which is done or not done."
        )
    if first == 0:
        return f"{lost} There is a checkpoint ({', '.join(whole[:3])}), and it is not used."
    return lost


def _judge_state(rank: int, mine: Snapshot, step: int, wanted: Attempt) -> None:
    """Raise Mistake unless a rank goes on from `step` in the state that the undisturbed job has there."""
    right, begin = wanted.snapshots[rank][step], wanted.snapshots[rank][0]
    if _apart(mine.weights, right.weights):
        same = [n for n, each in enumerate(wanted.snapshots[rank]) if not _apart(mine.weights, each.weights)]
        if not same:
            raise Mistake(f"the job goes on at step {step} with weights that it never had, on rank {rank}.")
        if same[0] == 0:
            raise Mistake(f"the job goes on at step {step} with the weights of the beginning: they are not loaded.")
        what = "done twice" if same[0] > step else "left out"
        raise Mistake(
            f"the job goes on at step {step} with the weights after {same[0]} steps: {_steps(abs(same[0] - step))} "
            f"{what}. Store how many steps the stored weights have behind them."
        )
    if step and _apart(mine.moments, right.moments):
        none = " (it has none)" if not any(mine.moments) else ""
        raise Mistake(
            f"the optimizer's moments are not those of step {step}{none}: `optimizer.state_dict()` belongs into the "
            "checkpoint, and is loaded after a restart."
        )
    if mine.optimizer_steps != right.optimizer_steps:
        raise Mistake(
            f"Adam has counted {mine.optimizer_steps} steps where {right.optimizer_steps} are done, on which "
            "its bias correction depends. `optimizer.state_dict()` holds it."
        )
    if mine.schedule != right.schedule and abs(mine.rate - right.rate) <= FAR:
        raise Mistake(
            f"the schedule stands at step {mine.schedule}, and {step} are done: the rate, right for now, falls at the "
            "wrong steps: `schedule.state_dict()` belongs into the checkpoint."
        )
    if mine.schedule != right.schedule or abs(mine.rate - right.rate) > FAR:
        raise Mistake(
            f"the learning rate is that of step {mine.schedule}, {mine.rate:.3g}, and {step} are done "
            f"({right.rate:.3g}): `schedule.state_dict()` belongs into the checkpoint."
        )
    _judge_data(rank, mine, step, wanted, begin)
    _judge_random(rank, mine, step, wanted, begin)


def _judge_data(rank: int, mine: Snapshot, step: int, wanted: Attempt, begin: Snapshot) -> None:
    right = wanted.snapshots[rank][step]
    if mine.drawn == right.drawn:
        return
    if mine.drawn == begin.drawn:
        raise Mistake(
            f"rank {rank} begins its data anew: at step {step} it takes the samples of the first batch once more. "
            "Where it stands in its data, `data.state_dict()`, belongs into the checkpoint."
        )
    for other, snapshots in enumerate(wanted.snapshots):
        if other != rank and mine.place == snapshots[step].place:
            raise Mistake(
                f"rank {rank} goes on at rank {other}'s place in the data: each rank skips other samples, and has a "
                "place of its own. Store every rank's."
            )
    for number, each in enumerate(wanted.snapshots[rank]):
        if mine.drawn == each.drawn:
            raise Mistake(f"rank {rank} takes the batch of step {number} at step {step}: when is its place stored?")
    raise Mistake(f"rank {rank} takes samples at step {step} that are not next: its place in the data is not restored.")


def _judge_random(rank: int, mine: Snapshot, step: int, wanted: Attempt, begin: Snapshot) -> None:
    if mine.random == wanted.snapshots[rank][step].random:
        return
    if mine.random == begin.random:
        raise Mistake(
            f"rank {rank}'s random state is that of the beginning: dropout draws its first masks once more. "
            "`torch.get_rng_state()` belongs into the checkpoint."
        )
    for other, snapshots in enumerate(wanted.snapshots):
        if other != rank and mine.random == snapshots[step].random:
            raise Mistake(
                f"rank {rank} goes on with rank {other}'s random state: its dropout draws the same masks. Store every "
                "rank's."
            )
    raise Mistake(
        f"rank {rank}'s random state at step {step} is not the one that it had there: `torch.get_rng_state()` of every "
        "rank belongs into the checkpoint, and `torch.set_rng_state(…)` comes last."
    )


def _differs(mine: Snapshot, right: Snapshot) -> str:
    """In words, the first thing in which two moments differ; "" if none."""
    if mine.drawn != right.drawn:
        return "the batch"
    if _apart(mine.weights, right.weights):
        return "the model"
    if mine.random != right.random:
        return "the random state"
    if _apart(mine.moments, right.moments) or mine.schedule != right.schedule:
        return "the optimizer"
    return ""


def _apart(a: Sequence[float], b: Sequence[float]) -> float:
    """The largest difference; 0 if none is larger than `FAR`."""
    if len(a) != len(b):
        return max(map(abs, (*a, *b)), default=0.0)
    far = max((abs(x - y) for x, y in zip(a, b, strict=True)), default=0.0)
    return far if far > FAR else 0.0


def _few(numbers: Iterable[int]) -> str:
    shown = list(numbers)
    return ", ".join(map(str, shown[:6])) + (", …" if len(shown) > 6 else "")


def _steps(count: int) -> str:
    return "1 step is" if count == 1 else f"{count} steps are"
