"""The stages of ZeRO beside each other: what a GPU holds on the left, what it sends in a step on the right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from utils.theory.memory import ModelStates, max_parameters, model_states
from utils.theory.recipes import PRECISION_RECIPES
from utils.theory.traffic import StepTraffic, step_bytes
from utils.views.bars import Bar, Frame, draw_bars, draw_key, draw_limit, draw_scale, gb
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import GRADIENT, MASTER_WEIGHTS, MOMENTS, WEIGHTS, Look
from utils.views.palette import SMALL, TITLE

HEIGHT = 372
STRATEGY = ("ddp", "zero1", "zero2", "zero3")  # by stage, in theory's words
_NAME = ("Stage 0", "ZeRO-1", "ZeRO-2", "ZeRO-3")
_TOP, _PITCH, _BAR = 132, 33, 23
_LONGEST = 2.0  # times the GPU's memory: what is longer is torn
# Field of ModelStates -> how it looks.
_STATES: dict[str, Look] = {
    "weights": WEIGHTS,
    "gradients": GRADIENT,
    "master_weights": MASTER_WEIGHTS,
    "optimizer": MOMENTS,
}


@dataclass(frozen=True)
class Question:
    """What does a stage cost, and what does it save?

    name: of the model. parameters: Psi. memory: of one GPU in bytes; memory_name: as a person writes it, "80 GB".
    stage: 0 to 3, the one that is told in full. The others as for `model_states` and `step_bytes`.
    """

    name: str
    parameters: float
    memory: float
    memory_name: str
    world_size: int = 64
    stage: int = 2
    recipe: str = "zero-paper"
    micro_batches: int = 1

    @cached_property
    def states(self) -> tuple[ModelStates, ...]:
        """Bytes on each GPU, by stage."""
        return tuple(model_states(self.parameters, self.world_size, each, recipe=self.recipe) for each in STRATEGY)

    @cached_property
    def traffic(self) -> tuple[StepTraffic, ...]:
        """Bytes of one step, by stage: weights in the precision that is computed in, gradients in that reduced."""
        recipe = PRECISION_RECIPES[self.recipe]
        return tuple(
            step_bytes(
                self.parameters,
                strategy,
                self.world_size,
                bytes_per_element=recipe.computed,
                gradient_bytes_per_element=recipe.communicated_gradients,
                micro_batches=self.micro_batches,
            )
            for strategy in STRATEGY
        )

    @property
    def most_parameters(self) -> int:
        """The largest model whose states fit under the chosen stage."""
        return max_parameters(self.memory, self.world_size, STRATEGY[self.stage], self.recipe)


def zero_picture(question: Question) -> Picture:
    """The two rows of bars, as a picture that draws itself. Errors as for `theory.memory` and `theory.traffic`."""
    board = Board(HEIGHT, WIDTH)
    board.show(zero_scene(question))
    return Picture(board.figure, zero_words(question))


def zero_words(question: Question) -> str:
    """The picture in words: its text alternative."""
    rows = "; ".join(
        f"{name} holds {gb(states.total)} and sends {gb(moved.per_rank)}"
        for name, states, moved in zip(_NAME, question.states, question.traffic, strict=True)
    )
    chosen = question.states[question.stage]
    parts = ", ".join(
        f"{look.name} {gb(getattr(chosen, field))}" for field, look in _STATES.items() if getattr(chosen, field)
    )
    return f"{_title(question)}. {rows}. {_NAME[question.stage]} in full: {parts}. {_verdict(question)}"


def zero_scene(question: Question) -> Scene:
    """The scene that `zero_picture` shows."""
    scene = Scene()
    scene.write(16, 18, _title(question), TITLE, align="left", bold=True)
    scene.write(16, 39, PRECISION_RECIPES[question.recipe].title, SMALL, align="left")
    held = [
        Bar(name, tuple((look, getattr(each, field)) for field, look in _STATES.items()), gb(each.total), at)
        for (name, each), at in zip(zip(_NAME, question.states, strict=True), _chosen(question), strict=True)
    ]
    sent = [_sent_bar(moved, at) for moved, at in zip(question.traffic, _chosen(question), strict=True)]
    most = 1.04 * max(1.1 * question.memory, min(max(bar.total for bar in held), _LONGEST * question.memory))
    left = Frame(84, _TOP, 356, _PITCH, _BAR, most)
    right = Frame(566, _TOP, 172, _PITCH, _BAR, max(1.0, *(bar.total for bar in sent)))
    scene.write(left.left, 66, "each GPU holds", align="left", bold=True)
    scene.write(right.left, 66, "and sends in a step", align="left", bold=True)
    draw_key(scene, left.left, 88, [(look, look.name) for look in _STATES.values()], gap=14)
    draw_key(scene, right.left, 88, [(WEIGHTS, "weights"), (GRADIENT, "gradients")], gap=14)
    draw_bars(scene, left, held, question.memory)
    draw_bars(scene, right, sent)
    draw_scale(scene, left, len(held))
    draw_scale(scene, right, len(sent), count=2)
    draw_limit(scene, left, len(held), question.memory, f"the GPU has {_memory(question)}")
    scene.write(16, HEIGHT - 66, _fits(question), align="left", bold=True)
    scene.write(16, HEIGHT - 43, _largest(question), align="left")
    scene.write(16, HEIGHT - 20, _moves(question), align="left")
    return scene


def _chosen(question: Question) -> list[bool]:
    return [stage == question.stage for stage in range(len(STRATEGY))]


def _sent_bar(moved: StepTraffic, bold: bool) -> Bar:
    sent = {WEIGHTS: 0.0, GRADIENT: 0.0}
    for each in moved.collectives:
        sent[WEIGHTS if each.purpose.startswith("parameters") else GRADIENT] += each.sent
    return Bar("", tuple(sent.items()), gb(moved.per_rank), bold)


def _title(question: Question) -> str:
    gpus = "1 GPU" if question.world_size == 1 else f"{question.world_size:,} GPUs"
    batches = "1 micro-batch" if question.micro_batches == 1 else f"{question.micro_batches} micro-batches"
    return f"{question.name}, {question.parameters:,.0f} parameters, {gpus}, {batches}"


def _verdict(question: Question) -> str:
    return f"{_fits(question)} {_largest(question)} {_moves(question)}"


def _fits(question: Question) -> str:
    total, name = question.states[question.stage].total, _NAME[question.stage]
    each = f"{total / question.parameters:.3g} B per parameter"
    if total <= question.memory:
        return f"{name}: {each}, {gb(total)}: fits into {_memory(question)}."
    return f"{name}: {each}, {gb(total)}: {gb(total - question.memory)} more than {_memory(question)}."


def _largest(question: Question) -> str:
    return f"Largest model that fits, before activations: {_count(question.most_parameters)} parameters."


def _moves(question: Question) -> str:
    if question.world_size == 1:
        return "One GPU has nobody to send to."
    moved, plain = question.traffic[question.stage].per_rank, question.traffic[0].per_rank
    return f"It sends {gb(moved)} in a step, {moved / plain:.3g} times what stage 0 sends."


def _memory(question: Question) -> str:
    exact = gb(question.memory)
    return exact if exact == question.memory_name else f"{question.memory_name} = {exact}"


def _count(number: float) -> str:
    """ "6.74 billion", "350 million": three digits."""
    for name, unit in (("trillion", 1e12), ("billion", 1e9), ("million", 1e6)):
        if number >= unit:
            return f"{float(f'{number / unit:.3g}'):g} {name}"
    return f"{number:,.0f}"
