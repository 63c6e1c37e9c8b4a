"""The model states on each GPU as one stacked bar against the GPU's memory."""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.memory import ModelStates, max_parameters, model_states
from utils.theory.recipes import PRECISION_RECIPES
from utils.theory.units import GB, format_bytes
from utils.views.bars import free_part, write_inside
from utils.views.board import Board, Scene, Words, extent
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import GRADIENT, MASTER_WEIGHTS, MOMENTS, OTHER, WEIGHTS, Look, draw_block, draw_swatch
from utils.views.kinds import round_steps as _round_steps
from utils.views.palette import FAINT, INK, PAPER, SMALL, TITLE

HEIGHT = 302
_LEFT, _SPAN = 16, WIDTH - 2 * 16
_BAR_TOP, _BAR = 92, 54
_KEY_TOP = 200
_KEPT_FREE = "#E4E4E4"

# Field of ModelStates -> how it looks and is called.
_STATES: dict[str, tuple[Look, str]] = {
    "weights": (WEIGHTS, "weights"),
    "gradients": (GRADIENT, "gradients"),
    "master_weights": (MASTER_WEIGHTS, "master weights"),
    "optimizer": (MOMENTS, "moments"),
    "buckets": (OTHER, "DDP's buckets"),
}


@dataclass(frozen=True)
class Question:
    """Does a model fit, under plain data parallelism?

    name: of the model, "" for none. parameters: Psi. memory: of one GPU in bytes; memory_name: as a person writes it,
    "80 GB". reserve: the share of it that is kept free, 0 to below 1. The others as for `theory.memory.model_states`.
    """

    parameters: float
    memory: float
    memory_name: str
    recipe: str = "zero-paper"
    world_size: int = 1
    reserve: float = 0.0
    gradient_as_bucket_view: bool = True
    name: str = ""

    @property
    def states(self) -> ModelStates:
        return model_states(
            self.parameters,
            self.world_size,
            "ddp",
            recipe=self.recipe,
            gradient_as_bucket_view=self.gradient_as_bucket_view,
        )

    @property
    def most_parameters(self) -> int:
        """The largest model that fits beside the reserve."""
        return max_parameters(
            self.memory,
            self.world_size,
            "ddp",
            recipe=self.recipe,
            reserve=self.reserve,
            gradient_as_bucket_view=self.gradient_as_bucket_view,
        )

    @property
    def usable(self) -> float:
        """Bytes of the GPU's memory beside the reserve."""
        return (1 - self.reserve) * self.memory

    @property
    def fits(self) -> bool:
        return self.parameters <= self.most_parameters


def memory_picture(question: Question) -> Picture:
    """The bar, the GPU's line, and in words the largest model that fits. Errors as for `theory.memory`."""
    board = Board(HEIGHT, WIDTH)
    board.show(memory_scene(question))
    return Picture(board.figure, memory_words(question))


def memory_words(question: Question) -> str:
    """The picture in words: its text alternative."""
    states = question.states
    parts = ", ".join(
        f"{name} {_gb(getattr(states, field))}" for field, (_, name) in _STATES.items() if getattr(states, field)
    )
    verdict = "It fits" if question.fits else "It does not fit"
    return (
        f"{_title(question)}: {parts}: {_gb(states.total)} in all, {_per_parameter(question):g} B per parameter. "
        f"{verdict} into {_room(question)}. {_everywhere(question)} {_largest(question)}"
    )


def memory_scene(question: Question) -> Scene:
    """The scene that `memory_picture` shows."""
    states, scene = question.states, Scene()
    scene.write(_LEFT, 18, _title(question), TITLE, align="left", bold=True)
    scene.write(
        _LEFT,
        39,
        f"{PRECISION_RECIPES[question.recipe].title}: {_per_parameter(question):g} B per parameter.",
        align="left",
    )
    most = 1.12 * max(states.total, question.memory)
    scale = _SPAN / most
    _draw_scale(scene, most, scale)
    _draw_memory(scene, question, scale)
    left = float(_LEFT)
    marks = [_LEFT + question.memory * scale, _LEFT + question.usable * scale]
    for field, (look, _) in _STATES.items():
        size = getattr(states, field)
        draw_block(scene, look, left, _BAR_TOP, size * scale, _BAR)
        if not look.hatched:
            middle = _BAR_TOP + _BAR / 2
            write_inside(scene, _gb(size), free_part(left, left + size * scale, marks), middle, look.colour)
        left += size * scale
    _draw_key(scene, question)
    fits = "It fits." if question.fits else f"It does not fit: {_gb(states.total - question.usable)} too much."
    scene.write(_LEFT, HEIGHT - 46, f"{fits} {_everywhere(question)}", align="left")
    scene.write(_LEFT, HEIGHT - 21, _largest(question), align="left", bold=True)
    return scene


def _draw_scale(scene: Scene, most: float, scale: float) -> None:
    foot = _BAR_TOP + _BAR
    scene.line(_LEFT, foot, _LEFT + _SPAN, foot, INK)
    for size in _round_steps(most, binary=False, count=6):
        x = _LEFT + size * scale
        scene.line(x, foot, x, foot + 5, INK)
        word = Words(x, foot + 16, _gb(size), SMALL)
        left, _, right, _ = extent(word)
        shift = max(0.0, _LEFT - left) - max(0.0, right - _LEFT - _SPAN)
        scene.write(x + shift, foot + 16, word.text, SMALL)


def _draw_memory(scene: Scene, question: Question, scale: float) -> None:
    """The GPU's memory as a frame around the bar; the reserve as an empty end of it."""
    right, usable = _LEFT + question.memory * scale, _LEFT + question.usable * scale
    top, foot = _BAR_TOP - 14, _BAR_TOP + _BAR
    if question.reserve:
        scene.box(usable, top, right - usable, foot - top, _KEPT_FREE)
        scene.line(usable, top, usable, foot, FAINT, 1.2)
    scene.line(right, top, right, foot + 6, INK, 3)
    label = f"the GPU has {_memory(question)}"
    align = "right" if right > WIDTH / 2 else "left"
    scene.write(right + (2 if align == "right" else -2), top - 10, label, align=align, bold=True)


def _draw_key(scene: Scene, question: Question) -> None:
    states = question.states
    for place, (field, (look, name)) in enumerate(_STATES.items()):
        size = getattr(states, field)
        x, y = _LEFT + (place % 3) * 270, _KEY_TOP + 22 * (place // 3)
        draw_swatch(scene, look, x, y)
        each = f"{size / question.parameters:g} B each, {_gb(size)}" if size else "none"
        scene.write(x + 20, y, f"{name}: {each}", SMALL, align="left")
    x, y = _LEFT + 2 * 270, _KEY_TOP + 22
    scene.box(x, y - 6, 14, 12, _KEPT_FREE if question.reserve else PAPER, edge=FAINT)
    kept = f"{_gb(question.memory - question.usable)} kept free" if question.reserve else "nothing kept free"
    scene.write(x + 20, y, kept, SMALL, align="left")


def _title(question: Question) -> str:
    gpus = "on 1 GPU" if question.world_size == 1 else f"on each of {question.world_size:,} GPUs"
    model = f"{question.name}, {question.parameters:,.0f}" if question.name else f"{_count(question.parameters)}"
    return f"{model} parameters {gpus}"


def _everywhere(question: Question) -> str:
    """What more GPUs change: nothing."""
    total = question.states.total
    if question.world_size == 1:
        return "More GPUs would each hold the same."
    everywhere = _gb(question.world_size * total)
    return f"All {question.world_size:,} GPUs hold the same: {everywhere} for {_gb(total)} of numbers."


def _largest(question: Question) -> str:
    beside = f" with {question.reserve:.0%} kept free" if question.reserve else ""
    return f"Largest model that fits{beside}, before activations: {_count(question.most_parameters)} parameters."


def _per_parameter(question: Question) -> float:
    states = question.states
    return states.total / question.parameters


def _memory(question: Question) -> str:
    exact = _gb(question.memory)
    return exact if exact == question.memory_name else f"{question.memory_name} = {exact}"


def _room(question: Question) -> str:
    """What the states must fit into."""
    if not question.reserve:
        return _memory(question)
    return f"the {_gb(question.usable)} that are left of {_memory(question)}"


def _gb(size: float) -> str:
    """In powers of ten, as the sizes of models and of GPUs are mostly given."""
    return format_bytes(size, binary=False, digits=1 if size >= 10 * GB else 2)


def _count(number: float) -> str:
    """ "6.74 billion", "350 million": three digits."""
    for name, unit in (("trillion", 1e12), ("billion", 1e9), ("million", 1e6)):
        if number >= unit:
            return f"{float(f'{number / unit:.3g}'):g} {name}"
    return f"{number:,.0f}"
