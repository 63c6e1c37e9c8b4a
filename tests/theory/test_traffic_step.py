"""A step's traffic against rings drawn edge by edge, against published volumes and against counters on links."""

import csv
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.theory.traffic import collective_bytes, step_bytes, traffic_by_rank
from utils.theory.units import GB

DATA = Path(__file__).parents[1] / "data"
STRATEGIES = ("ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp")
PSI = 7_000_000_000


def rows(name):
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def edge_by_edge(step):
    """(sent by rank, inside and across sent by node, across received by node), from rings drawn rank by rank."""
    n, group, on_node = step.world_size, step.shard_size, step.world_size // step.nodes
    sent = [0.0] * n
    inside, across, arrived = ([0.0] * step.nodes for _ in range(3))
    for kind, _, size, where, times in step.plan:
        if where == "shard":
            rings = [list(range(first, first + group)) for first in range(0, n, group)]
        else:
            rings = [list(range(place, n, group)) for place in range(group)]
        for ring in rings:
            moved = "all_reduce" if step.rules == "gloo" and kind == "reduce_scatter" else kind
            each = traffic_by_rank(moved, size, len(ring))[0].sent * times
            for source, target in zip(ring, [*ring[1:], ring[0]], strict=True):
                sent[source] += each
                if source // on_node == target // on_node:
                    inside[source // on_node] += each
                else:
                    across[source // on_node] += each
                    arrived[target // on_node] += each
    return sent, inside, across, arrived


@st.composite
def steps(draw, strategies=STRATEGIES):
    n = draw(st.integers(1, 48))
    strategy = draw(st.sampled_from(strategies))
    options = {"micro_batches": draw(st.integers(1, 6)), "rules": draw(st.sampled_from(["ring", "gloo"]))}
    options["gradient_bytes_per_element"] = draw(st.sampled_from([None, 2, 4]))
    options["reduce_every_micro_batch"] = draw(st.sampled_from([None, True, False]))
    if strategy in ("zero3", "fsdp", "hsdp"):
        options["reshard_after_forward"] = draw(st.booleans())
        options["root_parameters"] = draw(st.sampled_from([0, 1000, PSI]))
    if strategy == "hsdp":
        options["shard_size"] = draw(st.sampled_from(divisors(n)))
        may_be = [None, False] if options["reduce_every_micro_batch"] is False else [None, True, False]
        options["all_reduce_every_micro_batch"] = draw(st.sampled_from(may_be))
    return step_bytes(PSI, strategy, n, nodes=draw(st.sampled_from(divisors(n))), **options)


@given(steps())
def test_every_step_agrees_with_rings_drawn_edge_by_edge(step):
    sent, inside, across, arrived = edge_by_edge(step)
    assert [step.per_rank] * step.world_size == pytest.approx(sent)
    assert [node.inside for node in step.by_node] == pytest.approx(inside)
    assert [node.across for node in step.by_node] == pytest.approx(across)
    assert arrived == pytest.approx(across), "what leaves a node in rings is what comes in"
    assert step.across == pytest.approx(max(across))
    assert (step.inside, step.across) == pytest.approx(
        next((node.inside, node.across) for node in step.by_node if node.across == pytest.approx(max(across)))
    )


@given(steps())
def test_the_parts_are_the_whole(step):
    assert math.fsum(c.sent for c in step.collectives) == pytest.approx(step.per_rank)
    on_node = step.world_size // step.nodes
    assert step.inside + step.across == pytest.approx(on_node * step.per_rank)
    total = math.fsum(node.inside + node.across for node in step.by_node)
    assert total == pytest.approx(step.world_size * step.per_rank)


@given(st.integers(1, 64), st.integers(1, 8), st.sampled_from(["ring", "gloo"]))
def test_strategies_are_ordered(n, k, rules):
    ddp, zero1, zero2, zero3, fsdp = (
        step_bytes(PSI, s, n, micro_batches=k, rules=rules).per_rank for s in STRATEGIES[:5]
    )
    assert ddp <= zero1 <= zero2 <= zero3 == fsdp
    assert (ddp == zero1 == zero2) is (n == 1 or (k == 1 and rules == "ring"))


@given(st.integers(1, 40), st.integers(1, 6), st.sampled_from(["ring", "gloo"]), st.data())
def test_one_shard_group_is_fsdp_and_groups_of_one_are_ddp(n, k, rules, data):
    at = {"nodes": data.draw(st.sampled_from(divisors(n))), "micro_batches": k, "rules": rules}
    each = {"reduce_every_micro_batch": True}
    for hybrid, pure in (
        (step_bytes(PSI, "hsdp", n, n, **at), step_bytes(PSI, "fsdp", n, **at)),
        (step_bytes(PSI, "hsdp", n, 1, **at), step_bytes(PSI, "ddp", n, **at, **each)),
    ):
        assert (hybrid.per_rank, hybrid.inside, hybrid.across) == (pure.per_rank, pure.inside, pure.across)
        assert [(c.kind, c.sent) for c in hybrid.collectives] == [(c.kind, c.sent) for c in pure.collectives]


@given(st.sampled_from(STRATEGIES[:5]), st.integers(1, 63), st.integers(1, 8))
def test_more_ranks_and_more_micro_batches_never_send_less(strategy, n, k):
    here = step_bytes(PSI, strategy, n, micro_batches=k).per_rank
    assert here < step_bytes(PSI, strategy, n + 1, micro_batches=k).per_rank
    assert here <= step_bytes(PSI, strategy, n, micro_batches=k + 1).per_rank


@pytest.mark.parametrize(
    ("world_size", "gigabytes"), [(2, "14.0000"), (8, "24.5000"), (64, "27.5625"), (1024, "27.9727")]
)
def test_7b_in_bf16_has_14_GB_of_gradients(world_size, gigabytes):
    step = step_bytes(7e9, "ddp", world_size)
    assert step.collectives[0].total_bytes == 14 * GB
    assert f"{step.per_rank / GB:.4f}" == gigabytes


@pytest.mark.parametrize("row", rows("step_volume.csv"), ids=lambda row: row["scheme"])
def test_published_volumes(row):
    """The papers drop (N - 1) / N or write it out as (W - 1) / W."""
    for n in (2, 8, 64):
        sent = step_bytes(PSI, row["strategy"], n, bytes_per_element=1).per_rank
        assert sent == pytest.approx(float(row["volume_in_psi"]) * PSI * (n - 1) / n, rel=1e-15)


@pytest.mark.parametrize("row", rows("link_counters_2x2.csv"), ids=lambda row: row["strategy"])
def test_counters_on_the_links_between_two_nodes(row):
    """Counters see headers too, so the law stays below them by at most 1%."""
    step = step_bytes(PSI, row["strategy"], 4, int(row["shard_size"] or 0) or None, nodes=2, rules="gloo")
    assert 1 <= float(row["sent_across_in_S_per_node"]) / (step.across / (2 * PSI)) < 1.01


def test_many_nodes_of_eight_send_2_S_3_S_and_2_S_across():
    nodes = 1000
    for strategy, shard_size, limit in (("ddp", None, 2), ("fsdp", None, 3), ("hsdp", 8, 2)):
        step = step_bytes(PSI, strategy, 8 * nodes, shard_size, nodes)
        assert step.across / (2 * PSI) == pytest.approx(limit, rel=0.002)
    two = [step_bytes(PSI, *a, nodes=2, rules="ring").across / (2 * PSI) for a in (("fsdp", 4), ("hsdp", 4, 2))]
    assert two == [2.25, 1.0]


@pytest.mark.parametrize(("nodes", "on_node"), [(2, 2), (2, 8), (16, 8), (64, 8)])
def test_the_fsdp_papers_traffic_across_hosts_per_gpu(nodes, on_node):
    """Section 3.2.2 gives 2 M (W - 1) / W, 3 M (W - 1) / W and, for the hybrid, 2 M (W - 1) / (G W) per GPU.

    The first two are ours per rank if all of a flat ring crosses; our node sends that once, not G times. Its hybrid
    is larger than the ring among replicas by (W - 1) / (W - G).
    """
    m, w, g = 2 * PSI, nodes * on_node, on_node
    for strategy, passes in (("ddp", 2), ("fsdp", 3)):
        step = step_bytes(PSI, strategy, w, nodes=nodes)
        assert step.per_rank == step.across == pytest.approx(passes * m * (w - 1) / w, rel=1e-15)
    hybrid = step_bytes(PSI, "hsdp", w, g, nodes)
    papers = 2 * m * (w - 1) / (g * w)
    assert hybrid.across / g == pytest.approx(papers * (w - g) / (w - 1), rel=1e-12)
    assert hybrid.across / g < papers


K = 5
PER_STEP = [  # in (N - 1) / N of Psi's bytes, with K micro-batches
    ("ddp", {}, 2),
    ("ddp", {"reduce_every_micro_batch": True}, 2 * K),
    ("zero1", {}, 2),
    ("zero2", {}, K + 1),
    ("zero2", {"reduce_every_micro_batch": False}, 2),
    ("zero3", {}, 3 * K),
    ("fsdp", {}, 3 * K),
    ("fsdp", {"reduce_every_micro_batch": False}, 2 * K + 1),
    ("fsdp", {"reshard_after_forward": False}, 2 * K),
    ("fsdp", {"reshard_after_forward": False, "reduce_every_micro_batch": False}, K + 1),
    ("fsdp", {"root_parameters": PSI / 4}, 2.75 * K),
    ("fsdp", {"root_parameters": PSI / 4, "reshard_after_forward": False}, 2 * K),
    ("fsdp", {"gradient_bytes_per_element": 4}, 4 * K),
    ("zero1", {"gradient_bytes_per_element": 4}, 3),
    ("zero1", {"rules": "gloo"}, 3),
    ("zero2", {"rules": "gloo"}, 2 * K + 1),
    ("fsdp", {"rules": "gloo"}, 4 * K),
    ("ddp", {"rules": "gloo"}, 2),
]


@pytest.mark.parametrize(("strategy", "options", "passes"), PER_STEP)
def test_what_accumulation_and_options_cost(strategy, options, passes):
    step = step_bytes(PSI, strategy, 8, micro_batches=K, **options)
    assert step.per_rank == pytest.approx(passes * 2 * PSI * 7 / 8, rel=1e-15)


def test_hsdp_may_reduce_in_the_group_each_time_and_among_replicas_once():
    once = step_bytes(PSI, "hsdp", 16, 8, 2, micro_batches=K, all_reduce_every_micro_batch=False)
    each = step_bytes(PSI, "hsdp", 16, 8, 2, micro_batches=K)
    assert each == step_bytes(PSI, "hsdp", 16, 8, 2, micro_batches=K, all_reduce_every_micro_batch=True)
    assert once.across * K == each.across == K * 2 * PSI * 2 * 1 / 2
    assert each.per_rank - once.per_rank == (K - 1) * collective_bytes("all_reduce", 2 * PSI / 8, 2)


def test_replicas_cannot_exchange_what_was_not_reduced():
    with pytest.raises(ValueError, match="replicas have nothing to exchange"):
        step_bytes(PSI, "hsdp", 16, 8, reduce_every_micro_batch=False, all_reduce_every_micro_batch=True)


def test_shard_groups_smaller_and_larger_than_a_node_and_askew_to_it():
    s = 2 * PSI
    small = step_bytes(PSI, "hsdp", 16, 4, nodes=2)  # two groups a node: only replicas cross, 4 rings of 4
    assert small.across == pytest.approx(4 * 2 * 3 / 4 * s / 4)
    large = step_bytes(PSI, "hsdp", 16, 8, nodes=4)  # a group on two nodes: each ring of 8 leaves each node once
    assert large.across == pytest.approx(3 * 7 / 8 * s + 4 * 2 * 1 / 2 * s / 8)
    askew = step_bytes(PSI, "hsdp", 12, 6, nodes=3)  # the node in the middle has a part of both groups
    shard, replica = 3 * 5 / 6 * s, 4 * 2 * 1 / 2 * s / 6
    assert [node.across for node in askew.by_node] == pytest.approx(
        [shard + replica, 2 * shard + replica, shard + replica]
    )
    assert askew.across == askew.by_node[1].across


def test_directions_of_published_comparisons():
    """Throughputs, not bytes, so only directions: DDP beats FSDP on one node, and a second node costs the hybrid."""
    speed = {(row["model"], row["strategy"], int(row["gpus"])): row for row in rows("strategy_comparisons.csv")}
    ddp, fsdp = (float(speed["OLMo 1B", s, 4]["per_gpu"]) for s in ("ddp", "fsdp"))
    assert ddp > fsdp and step_bytes(1e9, "ddp", 4).per_rank < step_bytes(1e9, "fsdp", 4).per_rank
    one, two = (float(speed["llama2b", "hsdp", n]["per_gpu"]) for n in (8, 16))
    assert two < one and step_bytes(2e9, "hsdp", 8, 8).across == 0 < step_bytes(2e9, "hsdp", 16, 8, 2).across


def test_it_prints_itself():
    lines = str(step_bytes(7e9, "hsdp", 16, 8, 2)).splitlines()
    assert lines[0] == (
        "hsdp, 7,000,000,000 parameters, 16 ranks in shard groups of 8 on 2 nodes, ring rules: bytes sent in a step"
    )
    assert [line.split()[0] for line in lines[2:-1]] == ["all_gather", "all_gather", "reduce_scatter", "all_reduce"]
    assert lines[-1] == "each rank sends 38.5 GB; each node 294 GB inside, 14 GB across"
    html = step_bytes(7e9, "fsdp", 16)._repr_html_()
    assert html.count("<tr>") == 4 and "each rank sends 39.38 GB" in html
    assert "ddp, 7 parameters, 1 rank on 1 node" in str(step_bytes(7, "ddp", 1))


def test_numbers_of_numpy_and_large_whole_numbers():
    narrow = step_bytes(np.int32(2**30), "hsdp", np.uint8(16), np.uint8(8), np.uint8(2), np.float32(2), np.int8(100))
    assert narrow == step_bytes(2**30, "hsdp", 16, 8, 2, 2.0, 100)
    assert step_bytes(10**30, "fsdp", 10**5).per_rank == pytest.approx(6e30, rel=1e-4)
    assert "4 parameters" in str(step_bytes(Fraction(7, 2), "ddp", 4))


WRONG = [
    ("parameters", [0, -1, math.nan, math.inf, True, "7e9", None, 10**400]),
    ("world_size", [0, -8, 8.0, True, "8", None, math.nan]),
    ("strategy", ["fdsp", "", None, 3, ["ddp"]]),
    ("shard_size", [0, 3, -4, 4.0, True, "4", None]),
    ("nodes", [0, 3, -2, 2.0, True, "2", None]),
    ("bytes_per_element", [0, -2, math.nan, True, "2", None]),
    ("micro_batches", [0, -1, 1.5, True, "1", None]),
    ("gradient_bytes_per_element", [0, -2, math.inf, True, "4"]),
    ("reshard_after_forward", [0, 1, "no", None]),
    ("root_parameters", [-1, 8e9, math.nan, True, "1"]),
    ("reduce_every_micro_batch", [0, 1, "no"]),
    ("all_reduce_every_micro_batch", [0, "no"]),
    ("rules", ["tree", None, 3]),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG for value in values])
def test_a_wrong_argument_is_named_in_one_sentence(name, value):
    right = {"parameters": PSI, "strategy": "hsdp", "world_size": 16, "shard_size": 8, "nodes": 2}
    with pytest.raises(ValueError) as caught:
        step_bytes(**{**right, name: value})
    message = str(caught.value)
    assert message.startswith(f"{name} is ") and "\n" not in message and len(message) < 240


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"shard_size": 8}, "shard_size is 8, but ddp has no shard groups"),
        ({"root_parameters": 5}, "root_parameters is 5, but ddp gathers nothing"),
        ({"reshard_after_forward": False}, "reshard_after_forward is False, but ddp gathers nothing"),
        ({"all_reduce_every_micro_batch": True}, "but ddp has no replicas of shard groups"),
        ({"micro_batches": 10**400}, "(micro_batches|bytes_per_element) is .* of at most 1"),
        ({"bytes_per_element": 1e300}, "(micro_batches|bytes_per_element) is .* of at most 1"),
    ],
)
def test_options_of_other_strategies_and_sizes_beyond_floats_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        step_bytes(PSI, "ddp", 8, **options)


def test_a_misspelt_strategy_is_answered_with_the_nearest():
    for given_name, nearest in (("FDSP", "'fsdp'"), ("zero-3", "'zero3'"), ("dp", "'ddp'")):
        with pytest.raises(ValueError, match=f"did you mean .*{nearest}"):
            step_bytes(PSI, given_name, 8)


def test_equal_steps_are_equal_and_frozen():
    assert step_bytes(PSI, "fsdp", 8) == step_bytes(PSI, "fsdp", 8)
    with pytest.raises(AttributeError):
        step_bytes(PSI, "fsdp", 8).per_rank = 0
