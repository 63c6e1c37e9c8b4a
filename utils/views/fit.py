"""Does it fit: what each strategy holds on one GPU, one bar each, against the GPU's memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from utils.theory.architecture import Architecture
from utils.theory.breakdown import PART_NAMES, training_memory
from utils.theory.memory import STRATEGIES, model_states
from utils.theory.recipes import PRECISION_RECIPES
from utils.views.bars import Bar, Frame, draw_bars, draw_key, draw_limit, draw_scale, gb
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import PART_LOOKS
from utils.views.palette import SMALL, TITLE

HEIGHT = 424
_TOP, _PITCH, _BAR = 140, 31, 21
_LONGEST = 2.5  # times the GPU's memory: what is longer is torn
USUAL = "usual"  # no recipe of its own: what goes with each strategy
_FP32_SHARDS = ("fsdp", "hsdp")
#: By name: bytes per parameter and what they are.
RECIPES: dict[str, str] = {
    USUAL: "16 B: Adam; fp32 shards under fsdp and hsdp, else as zero-paper",
    **{name: f"{each.total:g} B: {each.title}" for name, each in PRECISION_RECIPES.items()},
}


@dataclass(frozen=True)
class Question:
    """Which strategies fit?

    name: of the model. memory: of one GPU in bytes; memory_name: as a person writes it. recipe: a key of `RECIPES`.
    with_activations: whether the peak of a step is asked for, or model states alone. shard_size: of hsdp's groups. The
    others as for `theory.breakdown.training_memory`.
    """

    name: str
    model: Architecture
    memory: float
    memory_name: str
    world_size: int = 8
    shard_size: int = 8
    recipe: str = USUAL
    with_activations: bool = True
    sequence: int = 2048
    micro_batch: int = 1
    recomputation: str = "none"

    @cached_property
    def parts(self) -> dict[str, dict[str, float]]:
        """By strategy, the bytes on one GPU by part (keys of `PART_NAMES`), at the largest moment of a step."""
        return {strategy: self._parts(strategy) for strategy in STRATEGIES}

    @cached_property
    def totals(self) -> dict[str, float]:
        """By strategy, the bytes on one GPU."""
        return {strategy: sum(parts.values()) for strategy, parts in self.parts.items()}

    @property
    def fitting(self) -> tuple[str, ...]:
        """The strategies that fit."""
        return tuple(strategy for strategy, total in self.totals.items() if total <= self.memory)

    def _parts(self, strategy: str) -> dict[str, float]:
        shard_size, recipe = self.shard_size if strategy == "hsdp" else None, self.recipe
        if recipe == USUAL:
            recipe = "fsdp2" if strategy in _FP32_SHARDS else "zero-paper"
        if self.with_activations:
            return training_memory(
                self.model,
                self.world_size,
                strategy,
                self.sequence,
                self.micro_batch,
                self.recomputation,
                shard_size,
                recipe,
            ).parts
        states = model_states(self.model.parameters, self.world_size, strategy, shard_size, recipe)
        return {
            "weights": states.weights,
            "gradients": states.gradients,
            "master_weights": states.master_weights,
            "optimizer": states.optimizer,
        }


def fit_picture(question: Question) -> Picture:
    """The bars and the GPU's line, as a picture that draws itself. Errors as for `theory.breakdown`."""
    board = Board(HEIGHT, WIDTH)
    board.show(fit_scene(question))
    return Picture(board.figure, fit_words(question))


def fit_words(question: Question) -> str:
    """The picture in words: its text alternative."""
    rows = []
    for strategy, parts in question.parts.items():
        largest = sorted((part for part in parts if parts[part]), key=parts.__getitem__, reverse=True)[:2]
        most = " and ".join(f"{PART_NAMES[part]} {gb(parts[part])}" for part in largest)
        rows.append(f"{_label(question, strategy)} {gb(question.totals[strategy])} (most of it {most})")
    return f"{_title(question)}. {_setting(question)}. {'; '.join(rows)}. {_verdict(question)}"


def fit_scene(question: Question) -> Scene:
    """The scene that `fit_picture` shows."""
    scene, memory = Scene(), question.memory
    scene.write(16, 18, _title(question), TITLE, align="left", bold=True)
    scene.write(16, 39, _setting(question), SMALL, align="left")
    shown = [part for part in PART_LOOKS if any(parts.get(part) for parts in question.parts.values())]
    looks = [(PART_LOOKS[part], PART_NAMES[part]) for part in shown]
    draw_key(scene, 16, 64, looks[:5])
    draw_key(scene, 16, 85, looks[5:])
    bars = []
    for strategy, parts in question.parts.items():
        total = question.totals[strategy]
        segments = tuple((PART_LOOKS[part], parts[part]) for part in shown if part in parts)
        fits = total <= memory
        said = f"{gb(total)}: {'fits' if fits else 'too much'}"
        bars.append(Bar(_label(question, strategy), segments, said, bold=fits))
    most = 1.03 * max(1.12 * memory, min(max(question.totals.values()), _LONGEST * memory))
    frame = Frame(104, _TOP, 556, _PITCH, _BAR, most)
    draw_bars(scene, frame, bars, memory)
    draw_scale(scene, frame, len(bars))
    draw_limit(scene, frame, len(bars), memory, f"the GPU has {_memory(question)}")
    scene.write(16, HEIGHT - 42, _verdict(question), align="left", bold=True)
    scene.write(16, HEIGHT - 19, _room(question), SMALL, align="left")
    return scene


def _label(question: Question, strategy: str) -> str:
    return f"hsdp ({question.shard_size})" if strategy == "hsdp" else strategy


def _title(question: Question) -> str:
    gpus = "1 GPU" if question.world_size == 1 else f"each of {question.world_size:,} GPUs"
    return f"{question.name}, {question.model.parameters:,} parameters, on {gpus}"


def _setting(question: Question) -> str:
    recipe = RECIPES[question.recipe]
    if not question.with_activations:
        return f"{recipe}. Model states alone"
    again = "" if question.recomputation == "none" else f", {question.recomputation} recomputation"
    return f"{recipe}. {question.micro_batch} x {question.sequence:,} tokens{again}"


def _verdict(question: Question) -> str:
    fitting = question.fitting
    if not fitting:
        return f"Nothing fits into {_memory(question)}."
    which = "Everything" if len(fitting) == len(STRATEGIES) else ", ".join(fitting)
    return f"{which} {'fits' if len(fitting) in (1, len(STRATEGIES)) else 'fit'} into {_memory(question)}."


def _room(question: Question) -> str:
    """What the smallest leaves of the GPU, or lacks."""
    strategy = min(question.totals, key=question.totals.__getitem__)
    left = question.memory - question.totals[strategy]
    for_what = "" if question.with_activations else " for activations and buffers"
    if left >= 0:
        return f"{strategy} holds least and leaves {gb(left)}{for_what}."
    return f"{strategy} holds least, and still {gb(-left)} too much."


def _memory(question: Question) -> str:
    exact = gb(question.memory)
    return exact if exact == question.memory_name else f"{question.memory_name} = {exact}"
