"""What crosses the links of a cluster, by the links' own counters and the sockets', against `theory.traffic`."""

import pytest
import torch

from tests.runtime.namespaces import needs_namespaces
from utils import Cluster, launch
from utils.notebooks.answers import load_answers
from utils.theory.traffic import step_bytes

pytestmark = needs_namespaces

LAYERS, WIDTH = 4, 768
PARAMETERS = LAYERS * WIDTH * WIDTH


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)])


def ddp_steps(rank, steps):
    ddp = torch.nn.parallel.DistributedDataParallel(model())
    for _ in range(steps):
        ddp(torch.ones(2, WIDTH)).sum().backward()


def fsdp_steps(rank, steps):
    from torch.distributed.fsdp import fully_shard

    sharded = model()
    for layer in sharded:
        fully_shard(layer)
    fully_shard(sharded)
    for _ in range(steps):
        sharded(torch.ones(2, WIDTH)).sum().backward()


def ring_steps(rank, all_reduce_ring, repeats):
    for _ in range(repeats):
        all_reduce_ring(torch.ones(PARAMETERS))


def bytes_sent(function, cluster, *arguments, **options):
    """By each node's link and by each rank's sockets in one repeat: runs of one and of three, the difference halved.

    What TCP sends again crosses a link twice: so the caller tries again.
    """
    ranks = cluster.nodes * cluster.ranks_per_node
    runs = {repeats: launch(function, ranks, *arguments, repeats, cluster=cluster, **options) for repeats in (1, 3)}
    links, wires = (
        [(b.sent - a.sent) / 2 for a, b in zip(getattr(runs[1], name), getattr(runs[3], name), strict=True)]
        for name in ("link_bytes", "wire_bytes")
    )
    return links, wires


WAYS = (
    "ddp",
    pytest.param("fsdp by gloo's rule", marks=pytest.mark.rest),
    "fsdp by the ring's rule",
    pytest.param("the learner's ring", marks=pytest.mark.rest),
)
PLACES = [
    pytest.param(2, 2),
    pytest.param(4, 1, marks=pytest.mark.rest),
    pytest.param(2, 1, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("nodes", "ranks_per_node"), PLACES)
@pytest.mark.parametrize("way", WAYS)
def test_the_counters_agree_with_the_law(way, nodes, ranks_per_node):
    cluster, ranks = Cluster(nodes, ranks_per_node, "5gbit"), nodes * ranks_per_node
    rules = "gloo" if "gloo" in way else "ring"
    strategy = "fsdp" if "fsdp" in way else "ddp"  # a ring sends as much as DDP: one all-reduce of everything
    law = step_bytes(PARAMETERS, strategy, ranks, nodes=nodes, bytes_per_element=4, rules=rules)
    function, *arguments = {
        "ddp": (ddp_steps,),
        "the learner's ring": (ring_steps, load_answers("03", "solutions").all_reduce_ring),
    }.get(way, (fsdp_steps,))
    across = [node.across for node in law.by_node]
    for _ in range(3):
        links, wires = bytes_sent(function, cluster, *arguments, true_reduce_scatter="ring's rule" in way)
        assert sum(wires) / ranks == pytest.approx(law.per_rank, rel=0.01)  # the sockets do not count what is resent
        if links == pytest.approx(across, rel=0.01):
            break
    assert links == pytest.approx(across, rel=0.01)
