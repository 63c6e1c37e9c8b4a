"""The calculator of transport and fabric: bucket, cards, GPUDirect and oversubscription in; times and rates out.

calculator = WayCalculator(size=25 * MB, network="InfiniBand NDR")
calculator                              # shows itself in a notebook
calculator.oversubscription = 4         # what moving the slider does
calculator.result.question.seconds("pageable memory")
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Dropdown, SelectionSlider

from utils.theory.fabric import PLACEMENTS
from utils.theory.links import LINKS
from utils.theory.units import GB, KB, MB, format_bytes
from utils.views.calculator import Calculator
from utils.views.controls import name_control, named, number_control
from utils.views.infra_way import HEIGHT, Question, way_scene, way_words

SIZES = tuple(size * MB for size in (1, 5, 25, 100, 500, 2000))
NETWORKS = ("Ethernet 10G", "Ethernet 25G", "Ethernet 100G", "InfiniBand HDR", "InfiniBand NDR", "InfiniBand XDR")
SLOTS = ("PCIe 3 x16", "PCIe 4 x16", "PCIe 5 x16")
PIECES = {"one piece": None, "pieces of 500 kB": 500 * KB, "pieces of 4 MB": 4 * MB}
COPIES = (1, 2, 3, 5, 8, 10, 15, 20, 30)  # GB/s
NODES = tuple(2**power for power in range(1, 12))  # 2 to 2,048
PER_LEAF = 16
OVERSUBSCRIPTIONS = (1, 1.5, 2, 3, 4, 8)


@dataclass(frozen=True)
class Result:
    """What is shown: the question, which knows its answers, and its words."""

    question: Question
    words: str


class WayCalculator(Calculator):
    """Eight controls, a sentence and a picture. 16 nodes hang at a leaf switch.

    size: bytes of a bucket, 1 MB to 2 GB. network: a name in `NETWORKS`, of one GPU's card; pcie: one in `SLOTS`.
    host_copy: GB/s of a copy in the host's memory, 1 to 30. pieces: a name in `PIECES`. nodes: 2 to 2,048.
    oversubscription: 1 to 8. placement: "by leaf" or "at random".
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        size: float = 25 * MB,
        network: str = "InfiniBand NDR",
        pcie: str = "PCIe 5 x16",
        host_copy: float = 10,
        pieces: str = "one piece",
        nodes: int = 64,
        oversubscription: float = 1,
        placement: str = "by leaf",
    ) -> None:
        super().__init__(HEIGHT, words_height=96)
        self._size = SelectionSlider(
            options=[(format_bytes(size, binary=False), size) for size in SIZES], **named("Bucket", "Bytes", 220, 50)
        )
        self._network = Dropdown(options=NETWORKS, **named("Network", "The card of one GPU", 230, 60))
        self._pcie = Dropdown(options=SLOTS, **named("Slot", "Of the GPU and of its card", 180, 36))
        self._host_copy = SelectionSlider(
            options=COPIES, **named("Host copy, GB/s", "A copy in the host's memory, measured", 270, 108)
        )
        self._pieces = Dropdown(options=list(PIECES), **named("In", "Whether stretches overlap", 190, 20))
        self._nodes = SelectionSlider(options=NODES, **named("Nodes", "16 at a leaf switch", 220, 46))
        self._oversubscription = SelectionSlider(
            options=OVERSUBSCRIPTIONS, **named("Oversubscription", "Bandwidth below a leaf over that above", 270, 112)
        )
        self._placement = Dropdown(
            options=PLACEMENTS, **named("Placed", "In which order the ring passes nodes", 180, 50)
        )
        controls = (
            self._size,
            self._network,
            self._pcie,
            self._host_copy,
            self._pieces,
            self._nodes,
            self._oversubscription,
            self._placement,
        )
        self.lay_out(controls)
        self.size, self.network, self.pcie, self.host_copy = size, network, pcie, host_copy
        self.pieces, self.nodes, self.oversubscription, self.placement = pieces, nodes, oversubscription, placement
        for control in controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    size = number_control(SIZES, "Bytes of a bucket, 1 MB to 2 GB.")
    network = name_control(NETWORKS, "The card of one GPU, one of `NETWORKS`.")
    pcie = name_control(SLOTS, "The slot of the GPU and of its card, one of `SLOTS`.")
    host_copy = number_control(COPIES, "A copy from place to place in the host's memory, in GB/s, 1 to 30.")
    pieces = name_control(tuple(PIECES), "Whether a bucket travels in one piece or in several, one of `PIECES`.")
    nodes = number_control(NODES, "How many nodes the ring passes, 2 to 2,048.")
    oversubscription = number_control(OVERSUBSCRIPTIONS, "Bandwidth below a leaf over that above it, 1 to 8.")
    placement = name_control(PLACEMENTS, "Whether the ring follows the leaves, one of `PLACEMENTS`.")

    def _redraw(self, _change: Any = None) -> None:
        asked = Question(
            self.size,
            LINKS[self.network],
            LINKS[self.pcie],
            self.host_copy * GB,
            PIECES[self.pieces],
            self.nodes,
            PER_LEAF,
            self.oversubscription,
            self.placement,
        )
        words = way_words(asked)
        self.result = Result(asked, words)
        self.show(way_scene(asked), words)
