"""What different calculators say about one job's memory, as bars, and why two of them disagree, as a list."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cached_property

from utils.theory.architecture import Architecture
from utils.theory.explain import Estimate, Explanation, explain
from utils.theory.peers import STAGES, job_estimates
from utils.views.bars import Bar, Frame, draw_bars, draw_key, draw_scale, gb
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import ACTIVATION, GRADIENT, MASTER_WEIGHTS, MOMENTS, OTHER, WEIGHTS, Look
from utils.views.palette import FAINT, SMALL, TITLE

HEIGHT = 566
_TOP, _PITCH, _BAR = 90, 27, 19
_LIST_TOP, _LINE = 332, 16
_WRAP = 60  # characters of a reason in one line

FP32_GRADIENT = Look("fp32 gradients", GRADIENT.colour, hatched=True)
_LOOKS: dict[str, Look] = {
    "weights": WEIGHTS,
    "16-bit gradients": GRADIENT,
    "fp32 gradients": FP32_GRADIENT,
    "master weights": MASTER_WEIGHTS,
    "optimizer": MOMENTS,
    "activations": ACTIVATION,
    "logits": ACTIVATION,
}  # any other term is OTHER
_KEY = (
    (WEIGHTS, "weights"),
    (GRADIENT, "gradients"),
    (FP32_GRADIENT, "gradients in fp32"),
    (MASTER_WEIGHTS, "master weights"),
    (MOMENTS, "moments"),
    (ACTIVATION, "activations"),
    (OTHER, "other"),
)


@dataclass(frozen=True)
class Question:
    """What do the calculators say of this job, and why do two of them disagree?

    name: of the model. stage: of ZeRO, 0 to 3. first, second: names in `theory.peers.STAGES`. activations: bytes that
    this suite's answer adds. The others as for `theory.peers.job_estimates`.
    """

    name: str
    model: Architecture
    world_size: int = 8
    stage: int = 2
    sequence: int = 4096
    micro_batch: int = 1
    recipe: str = "zero-paper"
    activations: float = 0
    first: str = "DeepSpeed"
    second: str = "this suite"

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """By calculator, where it knows the stage."""
        return job_estimates(
            self.model,
            self.world_size,
            self.stage,
            self.sequence,
            self.micro_batch,
            self.recipe,
            self.activations,
        )

    @property
    def silent(self) -> str:
        """Which of the two calculators have no answer at this stage, in words; "" if both have."""
        return " and ".join(sorted({name for name in (self.first, self.second) if name not in self.estimates}))

    @cached_property
    def explanation(self) -> Explanation | None:
        """Why the two disagree; None where one of them has no answer."""
        return None if self.silent else explain(self.estimates[self.first], self.estimates[self.second])


def peers_words(question: Question) -> str:
    """The picture in words: its text alternative."""
    said = "; ".join(
        f"{name} {gb(question.estimates[name].total)}" if name in question.estimates else f"{name} no answer"
        for name in STAGES
    )
    text = f"{_title(question)}. On each GPU: {said}."
    why = question.explanation
    if why is None:
        return f"{text} No answer for {_stage(question.stage)} from {question.silent}."
    return f"{text} {_verdict(question, why)} {_reasons(why)}"


def peers_scene(question: Question) -> Scene:
    """Bars above, the list of differences below."""
    scene = Scene()
    scene.write(16, 18, _title(question), TITLE, align="left", bold=True)
    scene.write(16, 39, "Bytes on each GPU, and what the calculator itself prints", SMALL, align="left")
    chosen = (question.first, question.second)
    bars = []
    for name in STAGES:
        found = question.estimates.get(name)
        if found is None:
            bars.append(Bar(name, (), f"no answer for {_stage(question.stage)}", name in chosen))
        else:
            bars.append(Bar(name, _segments(found), f"{gb(found.total)}{_printed(found)}", name in chosen))
    frame = Frame(208, _TOP, 324, _PITCH, _BAR, 1.02 * max(1, *(each.total for each in question.estimates.values())))
    draw_key(scene, 16, 66, _KEY, gap=18)
    draw_bars(scene, frame, bars)
    draw_scale(scene, frame, len(bars), count=4)
    why = question.explanation
    if why is None:
        text = f"No answer for {_stage(question.stage)} from {question.silent}: choose another."
        scene.write(16, _LIST_TOP - 38, text, align="left", bold=True)
    else:
        scene.write(16, _LIST_TOP - 38, _verdict(question, why), align="left", bold=True)
        draw_list(scene, why, _LIST_TOP, question.first, question.second)
    return scene


def draw_list(scene: Scene, why: Explanation, top: float, first: str, second: str) -> float:
    """The terms in which the two differ, with the reason for each; where the list ends."""
    ends = (210, 322, 408)
    for x, head in zip(ends, (first, second, "difference"), strict=True):
        for line, text in enumerate(reversed(head.split(", "))):
            scene.write(x, top - 14 * line, text, SMALL, align="right", bold=True)
    y = top + _LINE
    scene.line(16, y - _LINE / 2, WIDTH - 16, y - _LINE / 2, FAINT)
    for term in why.terms:
        if not term.size:
            continue
        scene.write(16, y, term.name, SMALL, align="left")
        for x, size in zip(ends, (gb(term.a), gb(term.b), _signed(term.size)), strict=True):
            scene.write(x, y, size, SMALL, align="right")
        for line in textwrap.wrap(term.why, _WRAP):
            scene.write(420, y, line, SMALL, align="left")
            y += _LINE
    scene.line(16, y - _LINE / 2, WIDTH - 16, y - _LINE / 2, FAINT)
    scene.write(16, y, "all", SMALL, align="left")
    for x, size in zip(ends, (gb(why.a.total), gb(why.b.total), _signed(why.difference)), strict=True):
        scene.write(x, y, size, SMALL, align="right", bold=True)
    return y + _LINE


def explanation_picture(why: Explanation) -> Picture:
    """Two estimates as bars and the list of their differences, as a picture that draws itself."""
    scene = Scene()
    scene.write(16, 18, "Why two estimates of one job disagree, on each GPU", TITLE, align="left", bold=True)
    bars = [
        Bar(f"{letter}: {each.who}", _segments(each), f"{gb(each.total)}{_printed(each)}")
        for letter, each in (("a", why.a), ("b", why.b))
    ]
    frame = Frame(300, 70, 320, _PITCH, _BAR, 1.02 * max(1, why.a.total, why.b.total))
    draw_key(scene, 16, 46, _KEY, gap=18)
    draw_bars(scene, frame, bars)
    draw_scale(scene, frame, 2, count=3)
    height = draw_list(scene, why, 172, "a", "b") + 26
    for line in textwrap.wrap(why.units, 118):
        scene.write(16, height - 18, line, SMALL, align="left")
        height += _LINE
    board = Board(round(height), WIDTH)
    board.show(scene)
    return Picture(board.figure, str(why))


def _segments(found: Estimate) -> tuple[tuple[Look, float], ...]:
    return tuple((_LOOKS.get(term.name, OTHER), max(term.size, 0)) for term in found.terms)


def _printed(found: Estimate) -> str:
    """What the tool writes where that is not the number of GB: its own unit means something else."""
    called, size = found.unit
    return "" if (called, size) == ("GB", 10**9) else f"  (prints {found.total / size:.2f} {called})"


def _verdict(question: Question, why: Explanation) -> str:
    if not why.difference:
        return f"{question.first} and {question.second} agree."
    more, less = (question.first, question.second) if why.difference > 0 else (question.second, question.first)
    return f"{more} says {gb(abs(why.difference))} more than {less}, term by term:"


def _reasons(why: Explanation) -> str:
    return " ".join(f"{term.name} {_signed(term.size)} ({term.why})." for term in why.terms if term.size)


def _title(question: Question) -> str:
    gpus = "1 GPU" if question.world_size == 1 else f"{question.world_size:,} GPUs"
    tokens = f"{question.micro_batch} x {question.sequence:,} tokens each"
    return f"{question.name} on {gpus}, {_stage(question.stage)}, {tokens}"


def _stage(stage: int) -> str:
    return f"ZeRO-{stage}" if stage else "plain data parallelism"


def _signed(size: float) -> str:
    return f"{'+' if size > 0 else '-'}{gb(abs(size))}" if size else gb(0)
