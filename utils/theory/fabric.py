"""A network of leaf switches with less bandwidth above than below, and links that several jobs share.

Nodes hang at leaf switches; leaves are joined by a spine. At an oversubscription of o a leaf of m nodes of rate B has
m B down and m B / o up. Who talks to a neighbour at the same leaf never notices. A ring that follows the leaves crosses
each leaf's border once, and needs B of it; a ring in the order in which a scheduler happened to give out nodes crosses
with nearly every edge.

Source: al-Fares, Loukissas and Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008 (fat
trees and oversubscription).
"""

from __future__ import annotations

from utils.theory.arguments import check_amount, check_choice, check_ranks, check_whole

PLACEMENTS = ("by leaf", "at random")


def uplink(rate: float, nodes_per_leaf: int, oversubscription: float) -> float:
    """Bytes per second that a leaf has to the spine, one way: m B / o."""
    check_amount("rate", rate, "what a node sends, in bytes per second", "such as 50e9")
    check_ranks("nodes_per_leaf", nodes_per_leaf, "nodes at a leaf switch")
    check_amount(
        "oversubscription", oversubscription, "bandwidth below a leaf over that above it", "such as 2", least=1
    )
    return float(rate) * int(nodes_per_leaf) / float(oversubscription)


def crossing(nodes: int, nodes_per_leaf: int, placement: str = "by leaf") -> float:
    """How many of a leaf's nodes send to another leaf, in one ring through all nodes.

    "by leaf": one, where there is more than one leaf. "at random": each has its successor on another leaf with the
    chance (n - m) / (n - 1), so m times that on the average. m: nodes on the leaf, at most all.
    """
    check_ranks("nodes", nodes, "nodes of the job")
    check_ranks("nodes_per_leaf", nodes_per_leaf, "nodes at a leaf switch")
    check_choice("placement", placement, PLACEMENTS)
    n, m = int(nodes), min(int(nodes_per_leaf), int(nodes))
    if n == m:
        return 0.0
    return 1.0 if placement == "by leaf" else m * (n - m) / (n - 1)


def ring_rate(
    rate: float, nodes: int, nodes_per_leaf: int, oversubscription: float, placement: str = "by leaf"
) -> float:
    """Bytes per second at which the edges of a ring through all nodes run; the slowest edge decides for all.

    Edges that cross share their leaf's uplink evenly. Several rings, one for each card say, share a node's rate and the
    uplink alike, so that for all of them together the result is the same.
    """
    up = uplink(rate, nodes_per_leaf, oversubscription)
    crossings = crossing(nodes, nodes_per_leaf, placement)
    return min(float(rate), up / crossings) if crossings else float(rate)


def shared_rate(rate: float, others: int) -> float:
    """What is left of a link for one of several that all have enough to send: an equal part, rate / (others + 1).

    TCP's flows over one bottleneck come near it when their round-trip times are alike (Chiu and Jain, 1989).
    """
    check_amount("rate", rate, "the link's bytes per second", "such as 25e6")
    check_whole("others", others, "how many others use the link", least=0)
    return float(rate) / (int(others) + 1)
