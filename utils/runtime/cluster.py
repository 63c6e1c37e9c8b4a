"""Nodes with ranks on them, joined by links of a chosen speed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from utils.runtime import kernel_link, speeds
from utils.theory.units import format_seconds, format_speed, shown

MOST_RANKS = 64
KINDS = ("auto", "emulated")
KIND_IN_ENVIRONMENT = "CLUSTER_KIND"


@dataclass(frozen=True)
class Links:
    """A cluster as its ranks are told of it: everything resolved, nothing left to find out.

    kind: "kernel" or "emulated". latency: seconds from node to node. latency_by: who delays: "kernel" (netem),
        "recorder", or "" without a latency.
    """

    nodes: int
    ranks_per_node: int
    bits_per_second: float
    latency: float
    kind: str
    latency_by: str

    def node_of(self, rank: int) -> int:
        """The node on which a rank lives: ranks 0 to ranks_per_node - 1 are on node 0, and so on."""
        return rank // self.ranks_per_node

    @property
    def emulated(self) -> str:
        """What of the links the recorder makes: "emulated link", "emulated latency", or "" if nothing."""
        if self.kind == "emulated":
            return "emulated link"
        return "emulated latency" if self.latency_by == "recorder" else ""


class Cluster:
    """`nodes` nodes of `ranks_per_node` ranks, each node joined to a switch by one link: `launch(..., cluster=...)`.

    link: the speed of each node's link, in both directions, as payload: "1gbit" lets 125 MB of tensors pass a second,
        headers come on top. "200mbit", "1.5gbit", or a number of bits per second; 1 Mbit/s to 20 Gbit/s.
    latency: how long what is sent takes from node to node besides that, in seconds or as "5ms"; None for no more than
        the machine's own.
    kind: "auto", or "emulated" to do without the kernel's links where they are to be had. The environment variable
        CLUSTER_KIND=emulated does the same for every cluster.

    The kernel's links: a link that was idle lets its first 64 KiB and 3 ms' worth pass at once; from then on the speed
    is kept. There are no other networks: a rank reaches the other ranks, not the Internet.

    Emulated links: the data moves over the machine's loopback, and an operation between nodes is over when the link
    would have carried it, by the ring's rules (gloo's reduce-scatter and broadcast move more). All ranks of a node
    share its link. It serves operations one after the other, in the order in which all their ranks have issued them;
    on a real link gloo lets two share it. A link cannot be faster than the loopback is under gloo. A receive from
    any source is not held back, the send that it meets is.

    Either way ranks on one node talk over the node's own loopback: neither slowed down nor counted on the link.
    Raises ValueError for what is out of range.
    """

    def __init__(
        self, nodes: int, ranks_per_node: int, link: Any = "1gbit", latency: Any = None, kind: str = "auto"
    ) -> None:
        self._nodes = _whole("nodes", nodes)
        self._ranks_per_node = _whole("ranks_per_node", ranks_per_node)
        if self.ranks > MOST_RANKS:
            raise ValueError(
                f"the cluster has {self._nodes} nodes of {self._ranks_per_node}, which makes {self.ranks} ranks; at "
                f"most {MOST_RANKS} run on one machine: make nodes or ranks_per_node smaller."
            )
        self._bits_per_second = speeds.bits_per_second(link)
        self._latency = speeds.seconds(latency)
        if kind not in KINDS:
            raise ValueError(f"kind is {shown(kind)}; it can be {_either(KINDS)}. Leave it out for 'auto'.")
        self._wanted = kind

    @property
    def nodes(self) -> int:
        return self._nodes

    @property
    def ranks_per_node(self) -> int:
        return self._ranks_per_node

    @property
    def ranks(self) -> int:
        """How many ranks it has in all: what `launch` must be asked for."""
        return self._nodes * self._ranks_per_node

    @property
    def bits_per_second(self) -> float:
        """The speed of each link in each direction, in bits of payload per second."""
        return self._bits_per_second

    @property
    def goodput(self) -> float:
        """The same in bytes per second: at most so much of tensors passes a node's link in each direction."""
        return self._bits_per_second / 8

    @property
    def latency(self) -> float:
        """Seconds from node to node on top of the machine's own; 0.0 if none was asked for."""
        return self._latency

    @property
    def kind(self) -> str:
        """ "kernel": network namespaces with shaped interfaces. "emulated": completions held back by the recorder."""
        return "emulated" if self._obstacle() else "kernel"

    @property
    def why(self) -> str:
        """Why it is of its kind, in one sentence."""
        obstacle = self._obstacle()
        if obstacle:
            return (
                f"The links are emulated, for {obstacle}: operations between nodes are held back as if each node's "
                "link served them one after the other, by the ring's rules."
            )
        return "The links are the Linux kernel's own: network namespaces joined by interfaces with a token bucket."

    @property
    def latency_by(self) -> str:
        """Who delays: "kernel" (its module netem), "recorder" where that is missing, "" if nothing is delayed."""
        if not self._latency:
            return ""
        return "kernel" if self.kind == "kernel" and kernel_link.kernel_delays() else "recorder"

    def links(self) -> Links:
        """What the ranks are told."""
        return Links(self.nodes, self.ranks_per_node, self.bits_per_second, self.latency, self.kind, self.latency_by)

    def _obstacle(self) -> str:
        """What stands against the kernel's links, or "" if nothing does."""
        return "the cluster was made with kind='emulated'" if self._wanted == "emulated" else why_emulated()

    def __repr__(self) -> str:
        latency = f", latency {format_seconds(self._latency)}" if self._latency else ""
        speed = format_speed(self._bits_per_second)
        return f"Cluster(nodes={self._nodes}, ranks_per_node={self._ranks_per_node}, links of {speed}{latency})"

    def picture(self, title: str = "") -> Any:
        """Nodes, ranks, the switch and the links between them."""
        from utils.views.cluster import cluster_picture  # the views know matplotlib; running ranks does not need it

        return cluster_picture(self, title=title)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.picture()._repr_mimebundle_(include, exclude)


def why_emulated() -> str:
    """Why clusters have no links of the kernel's here, in a few words; "" if they have.

    Raises ValueError if the environment asks for a kind that does not exist.
    """
    set_to = os.environ.get(KIND_IN_ENVIRONMENT, "") or "auto"
    if set_to not in KINDS:
        raise ValueError(f"{KIND_IN_ENVIRONMENT} is {set_to!r}; set it to {_either(KINDS)}, or unset it.")
    if set_to == "emulated":
        return f"the environment has {KIND_IN_ENVIRONMENT}=emulated"
    return kernel_link.why_no_kernel_links()


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value <= MOST_RANKS:
        raise ValueError(f"{name} is {shown(value)}; give a whole number from 1 to {MOST_RANKS}.")
    return int(value)


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(map(repr, names))
