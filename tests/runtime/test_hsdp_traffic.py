"""What DDP, FSDP and HSDP put on the links between nodes, by the links' counters, against `theory.traffic`."""

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh

from tests.runtime.namespaces import needs_namespaces
from utils import Cluster, launch
from utils.theory.traffic import forward_bytes, step_bytes

pytestmark = needs_namespaces

LAYERS, WIDTH = 4, 768
PARAMETERS = LAYERS * WIDTH * WIDTH
S = 4 * PARAMETERS  # bytes: fp32


def make_model(strategy, nodes, per_node):
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    layers = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)])
    if strategy == "ddp":
        return torch.nn.parallel.DistributedDataParallel(layers)
    if strategy == "hsdp":
        mesh = init_device_mesh("cpu", (nodes, per_node), mesh_dim_names=("replicate", "shard"))
    else:
        mesh = init_device_mesh("cpu", (nodes * per_node,))
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(layers, mesh=mesh)


def stepping(rank, strategy, nodes, per_node, training, repeats):
    model = make_model(strategy, nodes, per_node)
    for _ in range(repeats):
        with torch.set_grad_enabled(training):
            out = model(torch.ones(2, WIDTH))
        if training:
            out.sum().backward()


def sent_across(strategy, nodes, per_node, training=True):
    """Bytes that each node's link sent in one repeat: runs of one and of three, the difference halved."""
    cluster = Cluster(nodes, per_node, "5gbit")
    few, many = (
        launch(stepping, cluster.ranks, strategy, nodes, per_node, training, repeats, cluster=cluster, timeout=90,
               true_reduce_scatter=True).link_bytes
        for repeats in (1, 3)
    )  # fmt: skip
    return [(b.sent - a.sent) / 2 for a, b in zip(few, many, strict=True)]


def group_of(strategy, per_node):
    return per_node if strategy == "hsdp" else None


PLACES = [(2, 2), (2, 4), (4, 2)]
IN_MAKE_TEST = {("hsdp", (2, 2))}  # the others at 2 x 2: test_link_traffic.py
CASES = [
    pytest.param(strategy, *place, marks=() if (strategy, place) in IN_MAKE_TEST else pytest.mark.rest)
    for strategy in ("ddp", "fsdp", "hsdp")
    for place in PLACES
]


@pytest.mark.parametrize(("strategy", "nodes", "per_node"), CASES)
def test_a_step_sends_what_the_law_says(strategy, nodes, per_node):
    law = step_bytes(PARAMETERS, strategy, nodes * per_node, group_of(strategy, per_node), nodes, 4)
    for _ in range(3):  # what TCP sends again crosses twice
        sent = sent_across(strategy, nodes, per_node)
        if sent == pytest.approx([law.across] * nodes, rel=0.01):
            break
    assert sent == pytest.approx([law.across] * nodes, rel=0.01)


@pytest.mark.parametrize(
    ("nodes", "per_node"), [(2, 2), *(pytest.param(*place, marks=pytest.mark.rest) for place in PLACES[1:])]
)
def test_without_gradients_hsdp_puts_nothing_on_the_link_between_nodes(nodes, per_node):
    assert forward_bytes(PARAMETERS, "hsdp", nodes * per_node, per_node, nodes, 4).across == 0
    assert all(0 <= sent < 0.01 * S for sent in sent_across("hsdp", nodes, per_node, training=False))


@pytest.mark.rest
def test_without_gradients_fsdp_gathers_across():
    law = forward_bytes(PARAMETERS, "fsdp", 4, nodes=2, bytes_per_element=4).across
    assert law == 0.75 * S
    assert sent_across("fsdp", 2, 2, training=False) == pytest.approx([law] * 2, rel=0.02)
