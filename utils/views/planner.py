"""A plan as a picture: for each strategy the memory of a GPU, the step, and what binds; and the same in words."""

from __future__ import annotations

from utils.theory.planner.advice import title
from utils.theory.planner.plan import Plan, Row
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMMUNICATION, COMPUTE, FAINT, INK, SMALL, TITLE, paler
from utils.views.plan_bars import TORN, in_gb, in_time, memory_bar, step_bar

MOST_ROWS = 13  # DDP, ZeRO-1 and 2, FSDP, and HSDP in groups of 2 to 512
ROW, _TOP = 25, 92
HEIGHT = _TOP + MOST_ROWS * ROW + 34
_LABEL = 16
_MEMORY, _STEP, _BINDS = (214, 150), (452, 190), 744  # (where it begins, its widest bar); words
_BAR = 15
_SHORT = {"memory": "memory", "compute": "compute", "inside": "links inside", "across": "network"}


def chosen_rows(plan: Plan) -> list[Row]:
    """One for each strategy and group: recomputing or not, whichever fits and is faster, or lacks less."""
    found: dict[tuple[str, int | None], Row] = {}
    for row in plan.rows:
        key = row.strategy, row.shard_size
        found[key] = plan.row(row.strategy, shard_size=row.shard_size)
    return list(found.values())


def plan_picture(plan: Plan) -> Picture:
    """The plan, drawn."""
    board = Board(HEIGHT, WIDTH)
    board.show(plan_scene(plan))
    return Picture(board.figure, plan_words(plan))


def plan_words(plan: Plan) -> str:
    """The recommendation, and how every strategy stands."""
    rows = chosen_rows(plan)
    fitting = [f"{row.title} {in_time(row.seconds)}" for row in rows if row.fits]
    lacking = [f"{row.title} lacks {in_gb(row.over)}" for row in rows if not row.fits]
    said = f"{title(plan.ask)}. {plan.recommendation}"
    if fitting:
        said += f" What fits, and its step: {'; '.join(fitting)}."
    if lacking:
        said += f" What does not: {'; '.join(lacking)}."
    return said


def plan_scene(plan: Plan) -> Scene:
    """A row for each strategy; the recommended one in bold."""
    scene, rows, ask = Scene(), chosen_rows(plan), plan.ask
    where = f"{ask.nodes:,} node{'s' if ask.nodes > 1 else ''} of {ask.gpus_per_node} x {ask.gpu.name}"
    scene.write(_LABEL, 18, f"{ask.name} on {where}", TITLE, align="left", bold=True)
    batch = f"{ask.global_batch:,} sequences of {ask.sequence:,} tokens a step, {ask.network:,.0f} Gbit/s a node"
    scene.write(_LABEL, 40, batch, SMALL, align="left")
    (memory, wide), (step, _) = _MEMORY, _STEP
    for x, head in ((_LABEL, "strategy"), (memory, "memory of a GPU"), (step, "a step"), (_BINDS, "what binds")):
        scene.write(x, 66, head, SMALL, align="left", bold=True)
    for x, style, name in ((step + 60, COMPUTE, "compute"), (step + 140, COMMUNICATION, "lost to collectives")):
        scene.box(x, 60, 12, 12, style.colour)
        scene.write(x + 18, 66, name, SMALL, align="left")
    for i, row in enumerate(rows):
        _draw_row(scene, plan, row, rows, _TOP + i * ROW)
    foot = _TOP + len(rows) * ROW
    limit = memory + wide / TORN
    scene.line(limit, _TOP - 14, limit, foot - 6, INK, 1.6)
    scene.write(limit, foot + 6, f"{in_gb(ask.budget)} to use", SMALL)
    scene.line(memory, _TOP - 14, memory, foot - 6, FAINT)
    return scene


def _draw_row(scene: Scene, plan: Plan, row: Row, rows: list[Row], y: float) -> None:
    best = plan.best
    bold = best is not None and (row.strategy, row.shard_size) == (best.strategy, best.shard_size)
    if bold:
        scene.box(8, y - ROW / 2, WIDTH - 16, ROW, paler("#F0E442", 0.3))
    names = {"ddp": "DDP", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "fsdp": "FSDP", "hsdp": f"HSDP {row.shard_size}"}
    name = names[row.strategy] + (", recomputing" if row.again == "full" else "")
    scene.write(_LABEL, y, name, SMALL, align="left", bold=bold)
    (x, wide), (x_step, wide_step) = _MEMORY, _STEP
    memory_bar(scene, x, wide, y, _BAR, row.memory, plan.ask.budget, bold, room=62)
    longest = max(each.seconds for each in rows)
    lost = row.prediction.exposed + row.prediction.parts["contention"]
    compute, lost = ((each / longest * wide_step) for each in (row.seconds - lost, lost))
    step_bar(scene, x_step, y, _BAR, compute, lost, row.fits)
    scene.write(x_step + compute + lost + 5, y, in_time(row.seconds), SMALL, align="left", bold=bold)
    scene.write(_BINDS, y, _SHORT[row.binds] if row.fits else "does not fit", SMALL, align="left", bold=bold)
