"""Steps on nodes with two kinds of links, forwards without gradients, and the choice of a shard group."""

import pytest

from utils.theory.hybrid import BINDS, best, hybrid, model_layers, shard_sizes
from utils.theory.links import LINKS
from utils.theory.memory import model_states
from utils.theory.models import PRESETS
from utils.theory.sharing import Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.traffic import forward_bytes, step_bytes
from utils.theory.units import GB, MB

LAYERS = [Layer(0.010, gradient_bytes=4 * MB)] * 8
S = 32 * MB
FAST = Link(1e15)
MODEL = PRESETS["Llama-2-7B"]


def group(strategy, per_node):
    return {"shard_size": per_node} if strategy == "hsdp" else {}


@pytest.mark.parametrize("strategy", ["ddp", "zero1", "zero2", "fsdp", "hsdp"])
@pytest.mark.parametrize(("nodes", "per_node"), [(2, 2), (2, 4), (4, 2), (16, 8)])
def test_a_slow_link_between_nodes_carries_what_the_traffic_law_says(strategy, nodes, per_node):
    options = group(strategy, per_node)
    step = simulate_step(LAYERS, nodes * per_node, FAST, strategy, across=Link(1), nodes=nodes, **options)
    law = step_bytes(S / 4, strategy, nodes * per_node, nodes=nodes, bytes_per_element=4, **options)
    assert step.by_link["across"] == pytest.approx(law.across)


@pytest.mark.parametrize("shard_size", [1, 2, 4, 8, 16, 32])
def test_groups_of_every_size_put_their_bytes_on_the_link(shard_size):
    step = simulate_step(LAYERS, 32, FAST, "hsdp", shard_size=shard_size, across=Link(1), nodes=8)
    law = step_bytes(S / 4, "hsdp", 32, shard_size, 8, 4)
    assert step.by_link["across"] == pytest.approx(law.across)


def test_a_ring_lasts_as_long_as_its_slowest_edge():
    slow_inside = simulate_step(LAYERS, 4, Link(1 * MB), "fsdp", across=Link(100 * MB), nodes=2)
    assert slow_inside.by_link["across"] == 0
    assert slow_inside.by_link["link"] == pytest.approx(3 * 0.75 * S / (1 * MB))
    slow_across = simulate_step(LAYERS, 4, Link(100 * MB), "fsdp", across=Link(1 * MB), nodes=2)
    assert slow_across.by_link == {"link": 0, "across": pytest.approx(3 * 0.75 * S / (1 * MB))}


def test_hsdp_gathers_inside_and_all_ranks_of_a_node_share_its_link():
    step = simulate_step(LAYERS, 4, Link(10 * MB), "hsdp", shard_size=2, across=Link(100 * MB), nodes=2, overlap=False)
    inside, across = 3 * 0.5 * S / (10 * MB), 2 * 2 * 0.5 * (S / 2) / (100 * MB)
    assert step.by_link == {"link": pytest.approx(inside), "across": pytest.approx(across)}
    assert step.seconds == pytest.approx(0.240 + inside + across)


def test_alike_links_on_one_node_are_as_without_nodes():
    for strategy in ("ddp", "fsdp"):
        assert simulate_step(LAYERS, 4, Link(MB), strategy, nodes=1) == simulate_step(LAYERS, 4, Link(MB), strategy)
    flat = simulate_step(LAYERS, 4, Link(MB), "fsdp").seconds
    assert simulate_step(LAYERS, 4, FAST, "fsdp", across=Link(MB), nodes=2).seconds == pytest.approx(flat)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": 3, "across": FAST}, "nodes is 3; nodes hold equally many ranks: give .* divides world_size = 4"),
        ({"nodes": 2}, "across is None; 2 nodes need a link between them"),
        ({"across": FAST}, "ddp has no shard groups"),
    ],
)
def test_ragged_nodes_and_missing_links_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        simulate_step(LAYERS, 4, FAST, "ddp", **options)


def test_a_forward_without_gradients_gathers_or_sends_nothing():
    for strategy in ("ddp", "zero1", "zero2"):
        nothing = forward_bytes(1e6, strategy, 16, nodes=2)
        assert (nothing.per_rank, nothing.inside, nothing.across) == (0, 0, 0)
        assert "every rank has all that a forward pass needs" in str(nothing)
    assert forward_bytes(1e6, "fsdp", 16, nodes=2).across == 15 / 16 * 2e6
    inside = forward_bytes(1e6, "hsdp", 16, 8, 2)
    assert (inside.across, inside.per_rank) == (0, 7 / 8 * 2e6)
    assert forward_bytes(1e6, "hsdp", 16, 16, 2).across == 15 / 16 * 2e6
    with pytest.raises(ValueError, match="nodes is 3; nodes hold equally many ranks"):
        forward_bytes(1e6, "hsdp", 16, 8, 3)


def test_layers_of_a_model_are_all_of_it():
    layers = model_layers(MODEL, 4096, 4096, 0.4 * 989.4e12)
    assert sum(layer.gradient_bytes for layer in layers) == pytest.approx(2 * MODEL.parameters)
    compute = sum(layer.forward_seconds + layer.backward_seconds for layer in layers)
    assert compute == pytest.approx(4096 * (6 * MODEL.parameters + 12 * 32 * 4096 * 4096) / (0.4 * 989.4e12))


def choice(shard_size, nodes=8, model=MODEL, memory=80 * GB, across="InfiniBand NDR", **options):
    inside, between = Link(LINKS["NVLink 4"].one_way), Link(LINKS[across].one_way)
    return hybrid(model, nodes, 8, shard_size, inside, between, memory=memory, **options)


def test_within_a_node_larger_groups_cost_less_memory_and_send_less_across():
    choices = [choice(size) for size in (1, 2, 4, 8)]
    assert [c.memory for c in choices] == sorted((c.memory for c in choices), reverse=True)
    assert [c.traffic.across for c in choices] == sorted((c.traffic.across for c in choices), reverse=True)
    for c in choices:
        assert c.memory > model_states(MODEL.parameters, 64, "hsdp", c.shard_size, "fsdp2").total
    beyond = choice(16)
    assert beyond.memory < choices[-1].memory and beyond.traffic.across > choices[-1].traffic.across


def test_what_binds():
    assert choice(1).binds == "memory" and not choice(1).fits
    assert choice(8, across="EFA v2, p5").binds == "compute"
    assert choice(8, across="Ethernet 10G").binds == "across"
    assert choice(8, across="EFA v2, p5", flops_per_second=1e18).binds == "link"
    assert {choice(size).binds for size in (1, 8)} <= set(BINDS)


def test_the_best_is_the_fastest_that_fits():
    choices = [choice(size) for size in shard_sizes(8, 8)]
    assert best(choices).shard_size == 8
    assert best([c for c in choices if not c.fits]) is None
    assert best([choice(8), choice(8)]).shard_size == 8
    with pytest.raises(ValueError, match="choices is"):
        best(None)


def test_sizes_of_groups():
    assert shard_sizes(4, 8) == [1, 2, 4, 8, 16, 32]
    assert shard_sizes(6, 4) == [1, 2, 4, 8, 12, 24]
    assert shard_sizes(1, 6) == [1, 2, 3, 6]
    with pytest.raises(ValueError, match="nodes is 0"):
        shard_sizes(0, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shard_size": 3}, "shard_size is 3; .* divides world_size = 64"),
        ({"nodes": 2.5}, "nodes is 2.5; it is a number of nodes"),
        ({"memory": 0}, "memory is 0"),
        ({"micro_batch": 0}, "micro_batch is 0"),
        ({"flops_per_second": -1}, "flops_per_second is -1"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        choice(**{"shard_size": 8, **arguments})
