"""What one training step moves, strategy by strategy: by each rank, and inside and across the border of a node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from utils.theory.memory import STRATEGIES
from utils.theory.traffic import StepTraffic, step_bytes
from utils.views.bars import Bar, Frame, draw_bars, draw_key, draw_scale, gb
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import GRADIENT, WEIGHTS, Look
from utils.views.palette import COMMUNICATION, SMALL, TITLE, paler

HEIGHT = 378
#: By name: bytes per element of gathered parameters, and of reduced gradients.
PRECISIONS: dict[str, tuple[int, int]] = {
    "16 bit": (2, 2),
    "16 bit, gradients reduced in fp32": (2, 4),
    "fp32": (4, 4),
}
_GATHERING = ("zero3", "fsdp", "hsdp")
_TOP, _PITCH, _BAR = 104, 31, 21
_INSIDE = Look("inside", paler(COMMUNICATION.colour, 0.45))
_ACROSS = Look("across", COMMUNICATION.colour)


@dataclass(frozen=True)
class Question:
    """What does a step move?

    name: of the model. parameters: Psi. root_parameters: of its root unit, used if `root_kept`: FSDP's root stays
    gathered between forward and backward. shard_size: of hsdp's groups. precision: a key of `PRECISIONS`. The others as
    for `theory.traffic.step_bytes`.
    """

    name: str
    parameters: float
    root_parameters: float = 0
    world_size: int = 8
    nodes: int = 1
    shard_size: int = 8
    micro_batches: int = 1
    precision: str = "16 bit"
    rules: str = "ring"
    root_kept: bool = False

    @cached_property
    def traffic(self) -> dict[str, StepTraffic]:
        """Bytes of one step, by strategy."""
        gathered, reduced = PRECISIONS[self.precision]
        return {
            strategy: step_bytes(
                self.parameters,
                strategy,
                self.world_size,
                shard_size=self.shard_size if strategy == "hsdp" else None,
                nodes=self.nodes,
                bytes_per_element=gathered,
                gradient_bytes_per_element=reduced,
                micro_batches=self.micro_batches,
                root_parameters=self.root_parameters if self.root_kept and strategy in _GATHERING else 0,
                rules=self.rules,
            )
            for strategy in STRATEGIES
        }


def moves_picture(question: Question) -> Picture:
    """The rows of bars, as a picture that draws itself. Errors as for `theory.traffic.step_bytes`."""
    board = Board(HEIGHT, WIDTH)
    board.show(moves_scene(question))
    return Picture(board.figure, moves_words(question))


def moves_words(question: Question) -> str:
    """The picture in words: its text alternative."""
    parts = []
    for strategy, moved in question.traffic.items():
        node = f", each node {gb(moved.inside)} inside and {gb(moved.across)} across" if question.nodes > 1 else ""
        parts.append(f"{_label(question, strategy)}: each rank {gb(moved.per_rank)}{node}")
    text = f"{_title(question)}. Sent in one step, {_setting(question)}. {'; '.join(parts)}."
    return " ".join([text, *_remarks(question)])


def moves_scene(question: Question) -> Scene:
    """The scene that `moves_picture` shows: by each rank on the left, by each node on the right."""
    scene = Scene()
    scene.write(16, 18, _title(question), TITLE, align="left", bold=True)
    scene.write(16, 39, f"Sent in one step, {_setting(question)}", SMALL, align="left")
    traffic = question.traffic
    ranks = [_rank_bar(question, strategy, moved) for strategy, moved in traffic.items()]
    nodes = [
        Bar("", ((_INSIDE, moved.inside), (_ACROSS, moved.across)), f"{gb(moved.across)} across")
        for moved in traffic.values()
    ]
    left = Frame(98, _TOP, 236, _PITCH, _BAR, max(1.0, *(bar.total for bar in ranks)))
    right = Frame(448, _TOP, 240, _PITCH, _BAR, max(1.0, *(bar.total for bar in nodes)))
    on_node = question.world_size // question.nodes
    for frame, bars, heading in (
        (left, ranks, "each rank sends"),
        (right, nodes, f"each node sends ({on_node} rank{'s' * (on_node > 1)})"),
    ):
        scene.write(frame.left, _TOP - 36, heading, align="left", bold=True)
        draw_bars(scene, frame, bars)
        draw_scale(scene, frame, len(bars), count=3)
    draw_key(scene, left.left, _TOP - 16, [(WEIGHTS, "parameters"), (GRADIENT, "gradients")])
    draw_key(scene, right.left, _TOP - 16, [(_INSIDE, "inside the node"), (_ACROSS, "across its border")])
    for line, text in enumerate(_remarks(question)):
        scene.write(16, HEIGHT - 42 + 22 * line, text, SMALL, align="left")
    return scene


def _rank_bar(question: Question, strategy: str, moved: StepTraffic) -> Bar:
    sent = {"parameters": 0.0, "gradients": 0.0}
    for each in moved.collectives:
        sent["parameters" if each.purpose.startswith("parameters") else "gradients"] += each.sent
    segments = ((WEIGHTS, sent["parameters"]), (GRADIENT, sent["gradients"]))
    return Bar(_label(question, strategy), segments, gb(moved.per_rank))


def _label(question: Question, strategy: str) -> str:
    return f"hsdp ({question.shard_size})" if strategy == "hsdp" else strategy


def _title(question: Question) -> str:
    ranks = f"{question.world_size:,} rank{'s' * (question.world_size > 1)}"
    return f"{question.name}, {question.parameters:,.0f} parameters, {ranks} on {_nodes(question.nodes)}"


def _nodes(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes:,} nodes"


def _setting(question: Question) -> str:
    batches = "1 micro-batch" if question.micro_batches == 1 else f"{question.micro_batches} micro-batches"
    rules = "the ring's rules" if question.rules == "ring" else "gloo's rules"
    kept = ", root kept gathered" if question.root_kept else ""
    return f"{batches}, {question.precision}, {rules}{kept}"


def _remarks(question: Question) -> list[str]:
    """What the bars show at this setting, in one or two lines."""
    traffic = question.traffic
    if question.world_size == 1:
        return ["One rank has nobody to send to."]
    ratio = traffic["fsdp"].per_rank / traffic["ddp"].per_rank
    gloo = " gloo's reduce-scatter is an all-reduce, of which each rank keeps its share." * (question.rules == "gloo")
    lines = [f"fsdp sends {ratio:.2f} times what ddp sends.{gloo}"]
    if question.nodes > 1:
        share = traffic["hsdp"].across / traffic["fsdp"].across
        lines.append(f"Across nodes hsdp, in groups of {question.shard_size}, sends {share:.2f} times what fsdp sends.")
    return lines
