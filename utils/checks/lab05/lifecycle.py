"""Judges the order of events in the life of units none of which lies inside another."""

from __future__ import annotations

from collections.abc import Sequence

from utils.checks.lab05.life import SECTIONS, STEPS, Life, judge_empty, section
from utils.checks.lab05.models import sizes
from utils.checks.lab05.watching import REDUCING, Moment
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake

ENDS = {
    "made": "nothing has computed yet",
    "forward": "the forward is over",
    "backward": "the backward is over",
    "step": "the step is over",
    "evaluation": "an evaluation without gradients is over",
}


def judge_life(seen: Sequence[Seen], ahead: bool, micro: int = 1) -> None:
    """Raise Mistake unless the events come in the order of the lifecycle.

    ahead: the next gather must be under way. micro: micro-batches of a step.
    """
    for each in seen:
        life: Life = each.value
        judge_empty(life)
        for at, moment in enumerate(life.moments):
            if moment.unit < 0:
                _judge_end(moment)
            else:
                _judge_unit(each, at, ahead)
        judge_gathers(each, sizes(), micro)


def _judge_unit(seen: Seen, at: int, ahead: bool) -> None:
    moment: Moment = seen.value.moments[at]
    unit, last, where = moment.unit, len(sizes()) - 1, SECTIONS[moment.phase]
    back = moment.phase == "backward"
    after = unit - 1 if back else unit + 1
    has_next = 0 <= after <= last
    more = moment.whole - {unit, after}
    if len(moment.whole) > last:
        raise Mistake(
            f"all {last + 1} units are gathered during the {where} of unit {unit}: gather each before its own forward "
            "and its own backward, and free it after."
        )
    done = sorted(j for j in more if (j > unit if back else j < unit))
    if done:
        raise Mistake(_freed_too_late(seen, at, done[0]))
    if more:
        raise Mistake(
            f"during the {where} of unit {unit}, unit {min(more)} is gathered already: at most the next one, "
            f"{f'unit {after}' if has_next else 'here none'}, may be on its way."
        )
    if not (ahead and moment.over and has_next):
        return
    if after not in moment.whole and sizes()[after] not in moment.flying:
        raise Mistake(
            f"when the {where} of unit {unit} has computed, the gather of unit {after} is not issued yet: issue it "
            f"before unit {unit} computes, so that both go on at once."
            f"{' In backward the next is the one before.' if back else ''}"
        )
    if not moment.flying:
        raise Mistake(
            f"the prefetch blocks: the gather of unit {after} is waited for before unit {unit} has computed. Issue it "
            f"with `async_op=True`, and wait for it when unit {after} begins."
        )


def _freed_too_late(seen: Seen, at: int, unit: int) -> str:
    """In words, what becomes of a unit that is gathered though its own turn is over."""
    moments, size = seen.value.moments, sizes()[unit]
    moment, where = moments[at], SECTIONS[moments[at].phase]
    turn = f"during the {where} of unit {moment.unit}, unit {unit} is gathered, and its own {where} is over"
    before = [m for m in moments[:at] if (m.step, m.phase) == (moment.step, moment.phase)]
    own = max((i for i, m in enumerate(before) if m.unit == unit), default=0)
    if any(unit not in m.whole for m in before[own:]):
        return f"{turn}: it is gathered again. The next unit is looked for in the wrong direction."
    freed = next((m for m in moments[at:] if unit not in m.whole), None)
    if freed is None:
        again = [op for label, op in seen.issued if label.startswith("step 1") and op.bytes == size]
        if all(op.kind in REDUCING for op in again):
            return (
                f"{turn}; in the next step it is not gathered again. Gathered once for all, weights stay as they were: "
                "what the optimizer has stepped never reaches them, and no memory is saved. Free after use."
            )
        return f"{turn}: it is never freed. Empty the storage of its `flat` after its forward and after its backward."
    if freed.phase == moment.phase and freed.step == moment.step:
        return f"{turn}: it is freed too late."
    return f"{turn}: it is freed only in the {freed.phase}. Empty its storage when its own {moment.phase} is over."


def _judge_end(moment: Moment) -> None:
    kept = set(moment.whole)
    if moment.phase == "forward":
        kept -= {len(sizes()) - 1}  # its backward comes next
    if kept:
        names = ", ".join(str(number) for number in sorted(kept))
        raise Mistake(
            f"{ENDS[moment.phase]}, and the weights of unit {names} are gathered: each rank is to hold its shards "
            "alone."
        )


def judge_gathers(seen: Seen, sizes: Sequence[int], micro: int = 1, names: Sequence[str] = ()) -> None:
    """Raise Mistake if a unit is gathered twice where once is enough; units are told by their bytes."""
    for label, where in ((section(s, p, m), SECTIONS[p]) for s in range(STEPS) for m in range(micro) for p in SECTIONS):
        ops = [op for op_label, op in seen.issued if op_label == label and op.kind == "all_gather"]
        for unit, size in enumerate(sizes):
            times = sum(op.bytes == size for op in ops)
            if times > 1:
                name = names[unit] if names else f"unit {unit}"
                raise Mistake(f"{name} is gathered {times} times in one {where}; once is enough.")
