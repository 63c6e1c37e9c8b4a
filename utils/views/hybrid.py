"""Shard groups beside each other: memory of a GPU, bytes that leave a node, seconds of a step, and what binds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from utils.theory.hybrid import BINDS, Hybrid, best, hybrid, shard_sizes
from utils.theory.links import LinkSpec
from utils.theory.models import PRESETS
from utils.theory.sharing import Link
from utils.theory.units import GB, format_bytes
from utils.views.board import Scene
from utils.views.figure import WIDTH
from utils.views.palette import COMMUNICATION, COMPUTE, FAINT, INK, PAPER, PARAMETERS, SMALL, TITLE, paler

MOST_ROWS = 11  # groups of 1 to 1024
ROW, _TOP = 25, 92
HEIGHT = _TOP + MOST_ROWS * ROW + 34
_LABEL = 74
_COLUMNS = ((84, 200), (344, 130), (548, 190))  # (where it begins, its widest bar): memory, across, step
_BAR = 15
_LATENCY = {"link": 5e-6, "across": 10e-6}  # seconds of a ring's step: NCCL's, in its order of magnitude
_SAID = 60  # pixels that a size takes
_TORN = 1.5  # times the GPU's memory: a longer bar ends there


@dataclass(frozen=True)
class Question:
    """Which shard group? name: of the model. memory: of a GPU in bytes; memory_name: as a person writes it.

    inside: what a GPU has to the others on its node. across: what a node has to the others, each GPU with a card of its
    own where `cards` is above 1.
    """

    name: str
    nodes: int
    gpus_per_node: int
    shard_size: int
    inside: LinkSpec
    across: LinkSpec
    memory: float
    memory_name: str
    tokens: int = 4096  # of a GPU in a step

    @property
    def sequence(self) -> int:
        """Tokens of a sequence: all of them, or as many as the model has learned positions for."""
        return min(self.tokens, PRESETS[self.name].learned_positions or self.tokens)

    @property
    def choices(self) -> tuple[Hybrid, ...]:
        """One of each size of group, from 1 to all GPUs."""
        return _choices(
            self.name, self.nodes, self.gpus_per_node, self.inside, self.across, self.memory, self.tokens, self.sequence
        )

    @property
    def chosen(self) -> Hybrid:
        """That of `shard_size`."""
        return next(choice for choice in self.choices if choice.shard_size == self.shard_size)

    @property
    def best(self) -> Hybrid | None:
        """The fastest that fits."""
        return best(self.choices)


@lru_cache(maxsize=4)  # another group alone is another row of the same
def _choices(
    name: str,
    nodes: int,
    gpus_per_node: int,
    inside: LinkSpec,
    across: LinkSpec,
    memory: float,
    tokens: int,
    sequence: int,
) -> tuple[Hybrid, ...]:
    links = Link(inside.one_way, _LATENCY["link"]), Link(across.one_way, _LATENCY["across"])
    more = {"memory": memory, "sequence": sequence, "micro_batch": tokens // sequence}
    return tuple(
        hybrid(PRESETS[name], nodes, gpus_per_node, size, *links, **more) for size in shard_sizes(nodes, gpus_per_node)
    )


def hybrid_words(question: Question) -> str:
    """Memory, bytes, time and what binds of the chosen group, and which is best, in words."""
    chosen, found = question.chosen, question.best
    gpus = question.nodes * question.gpus_per_node
    fits = "fits" if chosen.fits else "does not fit"
    if found is None:
        advice = "No group fits"
    elif found is chosen:
        advice = "No group that fits is faster"
    else:
        advice = f"The fastest that fits: groups of {found.shard_size}, {_time(found.seconds)}"
    return (
        f"{question.name} on {question.nodes} nodes of {question.gpus_per_node} ({gpus} GPUs), shard groups of "
        f"{chosen.shard_size}: {_gb(chosen.memory)} on each GPU at the peak, which {fits} {question.memory_name}. Each "
        f"node sends {_gb(chosen.traffic.inside)} inside and {_gb(chosen.traffic.across)} across in a step. Compute "
        f"{_time(chosen.busy['compute'])}, links inside {_time(chosen.busy['link'])}, link between nodes "
        f"{_time(chosen.busy['across'])}: a step of {_time(chosen.seconds)}. What binds: "
        f"{BINDS[chosen.binds]}. {advice}."
    )


def hybrid_scene(question: Question) -> Scene:
    """A row for each size of group; the chosen one in bold."""
    scene, choices = Scene(), question.choices
    title = f"{question.name} on {question.nodes} nodes of {question.gpus_per_node} GPUs"
    scene.write(16, 18, title, TITLE, align="left", bold=True)
    where = f"{question.inside.name} inside a node, {question.across.name} between nodes, {question.tokens:,} tokens"
    scene.write(16, 40, f"{where} on each GPU in a step", SMALL, align="left")
    (memory, wide), (across, _), (step, _) = _COLUMNS
    scene.write(_LABEL, 66, "group", SMALL, align="right", bold=True)
    scene.write(memory, 66, "memory of a GPU", SMALL, align="left", bold=True)
    scene.write(across, 66, "a node sends across", SMALL, align="left", bold=True)
    scene.write(step, 66, "a step", SMALL, align="left", bold=True)
    scene.box(step + 60, 60, 12, 12, COMPUTE.colour)
    scene.write(step + 78, 66, "compute", SMALL, align="left")
    scene.box(step + 146, 60, 12, 12, COMMUNICATION.colour)
    scene.write(step + 164, 66, "only waiting", SMALL, align="left")
    for row, choice in enumerate(choices):
        _draw_row(scene, question, choice, _TOP + row * ROW)
    foot = _TOP + len(choices) * ROW
    limit = memory + wide / _TORN
    scene.line(limit, _TOP - 14, limit, foot - 6, INK, 1.6)
    scene.write(limit, foot + 6, question.memory_name, SMALL)
    scene.line(memory, _TOP - 14, memory, foot - 6, FAINT)
    return scene


def _draw_row(scene: Scene, question: Question, choice: Hybrid, y: float) -> None:
    bold = choice.shard_size == question.shard_size
    most = max(each.traffic.across for each in question.choices) or 1.0
    longest = max(each.seconds for each in question.choices)
    kind = "HSDP" if 1 < choice.shard_size < question.nodes * question.gpus_per_node else ""
    kind = kind or ("DDP" if choice.shard_size == 1 else "FSDP")
    if bold:
        scene.box(8, y - ROW / 2, WIDTH - 16, ROW, paler("#F0E442", 0.3))
    scene.write(_LABEL, y, f"{kind} {choice.shard_size}", SMALL, align="right", bold=bold)
    (x, wide), (x_across, wide_across), (x_step, wide_step) = _COLUMNS
    length = min(choice.memory / question.memory / _TORN, 1.0) * wide
    scene.box(x, y - _BAR / 2, length, _BAR, PARAMETERS.colour if choice.fits else PAPER, edge=PARAMETERS.colour)
    said, limit = x + length + 5, x + wide / _TORN
    said = limit + 5 if said < limit < said + _SAID else said  # not across the line
    scene.write(said, y, _gb(choice.memory), SMALL, align="left", bold=bold)
    length = choice.traffic.across / most * wide_across
    scene.box(x_across, y - _BAR / 2, length, _BAR, COMMUNICATION.colour)
    scene.write(x_across + length + 5, y, _gb(choice.traffic.across), SMALL, align="left", bold=bold)
    compute = (choice.seconds - choice.exposed) / longest * wide_step
    waiting = choice.exposed / longest * wide_step
    scene.box(x_step, y - _BAR / 2, compute, _BAR, COMPUTE.colour if choice.fits else PAPER, edge=COMPUTE.colour)
    fill = COMMUNICATION.colour if choice.fits else PAPER
    scene.box(x_step + compute, y - _BAR / 2, waiting, _BAR, fill, edge=COMMUNICATION.colour)
    said = _time(choice.seconds) if choice.fits else "does not fit"
    scene.write(x_step + compute + waiting + 5, y, said, SMALL, align="left", bold=bold)


def _gb(size: float) -> str:
    return f"{size / GB:.3g} GB" if size < 999.5 * GB else format_bytes(size, binary=False, digits=1)


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
