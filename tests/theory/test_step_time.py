"""Step times against measured ones, and the laws they obey."""

import csv
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from utils.theory.events import Transfer, simulate
from utils.theory.sharing import GLOO_CONCURRENCY, Link, ring_pieces, tcp_goodput
from utils.theory.step_time import LawTerms, Layer, Step, law_terms, layer_buckets, overlap_law, simulate_step
from utils.theory.traffic import step_bytes
from utils.theory.units import GB, MB, KiB, MiB

DATA = Path(__file__).parents[1] / "data" / "step_times_measured.csv"
with DATA.open() as file:
    ROWS = list(csv.DictReader(line for line in file if not line.startswith("#")))

# In the measured step, which takes longer than its paced layers because tensors are touched too.
MB_PER_LAYER, LAYERS_OF_IT, PACE = 4 * MB, 8, 0.010 / 0.240


def rows(*cases):
    found = [row for row in ROWS if row["case"] in cases]
    assert found
    return found


def predicted(row):
    """The step of a row, from the set rate, the sizes and the compute without communication."""
    layers = [Layer(float(row["base_seconds"]) * PACE, gradient_bytes=MB_PER_LAYER)] * LAYERS_OF_IT
    link = Link(tcp_goodput(float(row["mbit_per_second"]) * MB / 8), concurrency=GLOO_CONCURRENCY)
    if row["case"] == "units":
        return simulate_step(layers, 2, link, "fsdp", prefetch=int(row["what"]))
    if row["what"] == "nothing overlapped":
        return simulate_step(layers, 2, link, overlap=False)
    return simulate_step(layers, 2, link, bucket_bytes=int(row["what"]) * MiB)


def test_measured_steps_are_predicted_within_2_percent():
    errors = [predicted(row).seconds / float(row["measured_seconds"]) - 1 for row in rows("step", "units")]
    assert len(errors) == 11
    assert max(map(abs, errors)) <= 0.02 and sum(map(abs, errors)) / len(errors) <= 0.01


def finished(sizes):
    """When all-reduces between 2 nodes, issued together, are through over gloo at 100 Mbit/s."""
    link = Link(tcp_goodput(12.5 * MB), concurrency=GLOO_CONCURRENCY, by_turns=True)
    names = [f"all_reduce {i}" for i in range(len(sizes))]
    tasks = [Transfer(name, size, pieces=ring_pieces(size, 2)) for name, size in zip(names, sizes, strict=True)]
    timeline = simulate(tasks, {"link": link})
    return [timeline[name].end for name in names]


def test_gloo_serves_two_collectives_by_turns():
    four = [float(row["measured_seconds"]) for row in rows("together")]
    assert finished([4 * MB] * 4) == pytest.approx(four, rel=0.01)
    for row in rows("beside"):
        big, beside = finished([8 * MB, int(row["what"])])
        assert beside == pytest.approx(float(row["measured_seconds"]), rel=0.02)
        assert big == pytest.approx(0.67 + int(row["what"]) / (12.5 * MB), rel=0.02)


def test_by_turns_is_right_up_to_one_piece():
    """gloo keeps two pieces of each in flight, and which of two gets its second one out first is chance."""
    piece = 1 * MB / tcp_goodput(12.5 * MB)
    other = [float(row["measured_seconds"]) for row in rows("first gets ahead")]
    assert finished([4 * MB] * 4) == pytest.approx(other, abs=1.2 * piece)


def test_even_sharing_misses_who_is_first_but_not_when_all_are_through():
    """Without turns, the first of two equal ones is 14% late, and a tiny one is through at once."""
    fair = Link(tcp_goodput(12.5 * MB), concurrency=GLOO_CONCURRENCY)
    names = "abcd"
    timeline = simulate([Transfer(name, 4 * MB) for name in names], {"link": fair})
    assert [timeline[name].end for name in names] == pytest.approx([0.67, 0.67, 1.34, 1.34], rel=0.01)


LAYERS = [Layer(0.010, gradient_bytes=4 * MB)] * 8
GIGABIT = Link(tcp_goodput(125 * MB), concurrency=GLOO_CONCURRENCY)


def test_buckets_of_whole_layers():
    assert layer_buckets(LAYERS, 1 * MiB) == tuple((i,) for i in range(7, -1, -1))
    assert layer_buckets(LAYERS, 8 * MiB) == ((7, 6, 5), (4, 3, 2), (1, 0))
    assert layer_buckets(LAYERS) == ((7,), (6, 5, 4, 3, 2, 1, 0))  # 1 MiB first, as PyTorch does
    assert layer_buckets([Layer(1), Layer(1, gradient_bytes=5), Layer(1)], 4) == ((1,),)
    assert layer_buckets([Layer(1)]) == ()


def test_buckets_are_sent_in_their_order():
    """As DDP does: a bucket that is full waits for those before it."""
    layers = [Layer(1.0, gradient_bytes=1 * GB)] * 2
    step = simulate_step(layers, 2, Link(1 * GB), buckets=[[0], [1]])
    assert step.timeline["all_reduce 1"].issued == step.timeline["backward 0"].end == 6
    assert step.seconds == law_terms(layers, 2, Link(1 * GB), buckets=[[0], [1]]).seconds == 8
    assert simulate_step(layers, 2, Link(1 * GB), buckets=np.array([[1], [0]]).tolist()).seconds == 7


def test_one_layer_by_hand():
    """Forward 1, backward 2, then an all-reduce of 2 (n - 1) / n S = 1.5 s and six latencies of 0.1."""
    step = simulate_step([Layer(1.0, gradient_bytes=1 * GB)], 4, Link(1 * GB, latency=0.1))
    assert step.seconds == pytest.approx(5.1) and step.exposed == pytest.approx(2.1)
    assert step.compute == 3.0 and step.communication == pytest.approx(2.1)
    assert step.timeline["all_reduce 0"].issued == 3.0
    assert str(step).startswith("ddp: 5100.0 ms a step, of which compute 3000.0 ms and 2100.0 ms only waiting")


def test_fsdp_by_hand():
    """Two units, gathers and reduce-scatters of 1 s, forward 1 and backward 2 each."""
    units = [Layer(1.0, gradient_bytes=2 * GB)] * 2
    # Gather 0, then 0 computes while 1 is gathered, then 1; gather 1 again, ...; the last reduce-scatter is exposed.
    step = simulate_step(units, 2, Link(1 * GB), "fsdp")
    assert [step.timeline[f"all_gather for forward {i}"].end for i in (0, 1)] == [1, 2]
    assert [step.timeline[f"all_gather for backward {i}"].end for i in (1, 0)] == [4, 5]
    assert [step.timeline[f"backward {i}"].end for i in (1, 0)] == [6, 8]
    assert step.seconds == 9 and step.exposed == 3
    assert simulate_step(units, 2, Link(1 * GB), "fsdp", overlap=False).seconds == 12
    assert simulate_step(units, 2, Link(1 * GB), "fsdp", prefetch=0).seconds == 12  # in line
    assert simulate_step(units, 2, Link(1 * GB), "fsdp", reshard=False).seconds == 8


def test_hsdp_reduces_across_what_is_left_of_the_gradients():
    units = [Layer(1.0, gradient_bytes=4 * GB)] * 2
    step = simulate_step(units, 8, Link(100 * GB), "hsdp", shard_size=4, across=Link(1 * GB))
    across = [event for event in step.timeline.events if event.lane == "across"]
    assert [event.end - event.start for event in across] == pytest.approx([1, 1])
    assert step.seconds == pytest.approx(step.timeline["backward 0"].end + 0.03 + 1)


def test_accumulation_communicates_once_with_ddp_and_each_time_with_fsdp():
    for strategy, times in (("ddp", 1), ("zero1", 1), ("zero2", 3), ("fsdp", 3)):
        cap = None if strategy == "fsdp" else 1 * MiB
        step = simulate_step(LAYERS, 2, GIGABIT, strategy, bucket_bytes=cap, micro_batches=3)
        kind = "all_reduce" if strategy == "ddp" else "reduce_scatter"
        assert sum(event.name.startswith(kind) for event in step.timeline.events) == 8 * times
        assert step.compute == pytest.approx(3 * 0.240)


@pytest.mark.parametrize("strategy", ["ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"])
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_communication_is_that_of_the_traffic_laws(strategy, micro_batches):
    """At 1 byte per second the time on the links is the number of bytes sent by `traffic.step_bytes`."""
    shard_size = 4 if strategy == "hsdp" else None
    across = Link(1) if strategy == "hsdp" else None
    step = simulate_step(
        LAYERS, 8, Link(1), strategy, shard_size=shard_size, across=across, micro_batches=micro_batches
    )
    law = step_bytes(8 * 4 * MB / 4, strategy, 8, shard_size, bytes_per_element=4, micro_batches=micro_batches)
    assert step.communication == pytest.approx(law.per_rank)


def test_more_concurrency_can_make_fsdp_slower():
    """A gather that compute waits for shares the link with a gather and a reduce-scatter that can wait."""
    units = [Layer(5.0, gradient_bytes=20 * GB), Layer(1.0, gradient_bytes=20 * GB)]
    times = [simulate_step(units, 2, Link(1 * GB, concurrency=c), "fsdp").seconds for c in (1, 2)]
    assert times == pytest.approx([61, 69])


layers = some.lists(
    some.builds(
        Layer,
        some.floats(1e-4, 0.1),
        some.floats(1e-4, 0.2),
        some.floats(0, 1e8).map(lambda size: size if size > 1 else 0.0),
    ),
    min_size=1,
    max_size=10,
)
worlds = some.integers(1, 64)
caps = some.floats(1 * KiB, 1e8)
rates = some.floats(1e7, 1e12)
strategies = some.sampled_from(["ddp", "zero1", "zero2", "fsdp"])


def options(strategy, cap, prefetch=None):
    """Those that the strategy has."""
    return {"prefetch": prefetch} if strategy == "fsdp" else {"bucket_bytes": cap}


LITTLE = {"rel": 1e-6, "abs": 1e-9}


@given(layers, worlds, rates, caps, strategies, some.integers(1, 3), some.integers(0, 4), some.integers(1, 3))
def test_a_step_lies_between_its_bounds(layers, n, rate, cap, strategy, concurrency, prefetch, micro_batches):
    step = simulate_step(
        layers,
        n,
        Link(rate, concurrency=concurrency),
        strategy,
        **options(strategy, cap, prefetch),
        micro_batches=micro_batches,
    )
    most = step.compute + step.communication
    assert max(step.compute, step.communication) <= step.seconds * (1 + 1e-6) <= most * (1 + 2e-6) + 1e-9
    assert step.exposed >= 0 and step.exposed == pytest.approx(step.seconds - step.compute, **LITTLE)


@given(layers, worlds, rates, caps, strategies, some.floats(0, 0.01), some.integers(1, 3))
def test_without_overlap_it_is_the_sum(layers, n, rate, cap, strategy, latency, micro_batches):
    step = simulate_step(
        layers, n, Link(rate, latency), strategy, **options(strategy, cap), overlap=False, micro_batches=micro_batches
    )
    assert step.seconds == pytest.approx(step.compute + step.communication, **LITTLE)


@given(layers, worlds, caps, strategies)
def test_on_a_link_without_limit_it_is_the_compute(layers, n, cap, strategy):
    step = simulate_step(layers, n, Link(1e30), strategy, **options(strategy, cap))
    assert step.seconds == pytest.approx(step.compute, **LITTLE)


@given(layers, worlds, rates, some.floats(1, 100), caps, some.integers(1, 3), some.floats(0, 0.01), strategies)
def test_a_faster_link_never_slows_a_step(layers, n, rate, factor, cap, concurrency, latency, strategy):
    slow, fast = (
        simulate_step(layers, n, Link(each, latency, concurrency), strategy, **options(strategy, cap)).seconds
        for each in (rate, rate * factor)
    )
    assert fast <= slow * (1 + 1e-9)


@given(layers, worlds, rates, caps, some.integers(2, 4), some.booleans())
def test_who_is_served_first_does_not_change_a_ddp_step_without_latency(layers, n, rate, cap, concurrency, by_turns):
    one = simulate_step(layers, n, Link(rate), bucket_bytes=cap).seconds
    other = simulate_step(layers, n, Link(rate, 0.0, concurrency, by_turns), bucket_bytes=cap).seconds
    assert other == pytest.approx(one, **LITTLE)


@given(layers, worlds, rates, caps, some.floats(0, 0.01), some.integers(2, 4))
def test_with_latency_more_concurrency_never_slows_ddp(layers, n, rate, cap, latency, concurrency):
    one, more = (
        simulate_step(layers, n, Link(rate, latency, each), bucket_bytes=cap).seconds for each in (1, concurrency)
    )
    assert more <= one * (1 + 1e-9)


@given(layers, worlds, rates, caps, some.floats(0, 0.01))
def test_the_law_is_never_above_the_step_and_short_of_it_by_a_known_bound(layers, n, rate, cap, latency):
    layers[0] = Layer(0.0, 0.001, 100.0)  # the law has the last bucket full when backward ends
    link = Link(rate, latency)
    terms = law_terms(layers, n, link, bucket_bytes=cap)
    step = simulate_step(layers, n, link, bucket_bytes=cap).seconds
    assert terms.seconds <= step * (1 + 1e-9)
    assert step <= (terms.seconds + terms.short_by) * (1 + 1e-9)
    assert step <= 2 * terms.seconds * (1 + 1e-9)


@given(
    some.integers(1, 30),
    some.floats(1e-4, 0.1),
    some.floats(1e3, 1e8),
    worlds,
    rates,
    some.integers(1, 8),
    some.floats(0, 0.01),
)
def test_the_law_is_exact_for_equal_layers_in_equal_buckets(count, seconds, size, n, rate, per_bucket, latency):
    link = Link(rate, latency)
    layers = [Layer(seconds, gradient_bytes=size)] * count * per_bucket
    buckets = [range(k - per_bucket, k) for k in range(len(layers), 0, -per_bucket)]
    law = law_terms(layers, n, link, buckets=buckets).seconds
    assert simulate_step(layers, n, link, buckets=buckets).seconds == pytest.approx(law, rel=1e-9)


def test_the_law_misses_a_large_bucket_in_the_middle():
    """An embedding between two small layers: backward is over when the large bucket begins, and it is not the last."""
    layers = [Layer(0.0, 0.001, 1 * MB), Layer(0.0, 1.0, 1000 * MB), Layer(0.0, 0.001, 1 * MB)]
    link = Link(1 * GB)
    terms, step = law_terms(layers, 2, link, bucket_bytes=1), simulate_step(layers, 2, link, bucket_bytes=1)
    assert terms.seconds == pytest.approx(1.003) and step.seconds == pytest.approx(2.002)
    assert step.seconds - terms.seconds == pytest.approx(terms.short_by, rel=0.01)


def test_a_hundred_layers_in_a_hundred_buckets_follow_a_slider():
    layers = [Layer(0.001, gradient_bytes=4 * MB)] * 100
    best = float("inf")
    for _ in range(30):
        began = time.process_time()
        simulate_step(layers, 8, Link(1 * GB, 1e-4, 2), bucket_bytes=1)
        best = min(best, time.process_time() - began)
    assert best <= 0.005, f"{1e3 * best:.1f} ms"


FINE = [Layer(0.01, gradient_bytes=4 * MB)]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: simulate_step([], 2, GIGABIT), "layers is empty"),
        (lambda: simulate_step([0.01], 2, GIGABIT), "layer 0 is 0.01; give a Layer"),
        (lambda: simulate_step(3, 2, GIGABIT), "layers is 3; give a list"),
        (lambda: simulate_step(FINE, 0, GIGABIT), "world_size is 0"),
        (lambda: simulate_step(FINE, True, GIGABIT), "world_size is True"),
        (lambda: simulate_step(FINE, 2, 125e6), "link is 125000000.0; give a Link"),
        (lambda: simulate_step(FINE, 2, GIGABIT, "zero"), "strategy is 'zero'.*did you mean 'zero"),
        (lambda: simulate_step(FINE, 2, GIGABIT, None), "strategy is None"),
        (lambda: simulate_step(FINE, 2, GIGABIT, bucket_bytes=0), "bucket_bytes is 0"),
        (lambda: simulate_step(FINE, 2, GIGABIT, bucket_bytes="1 MiB"), "bucket_bytes is '1 MiB'"),
        (lambda: simulate_step(FINE, 2, GIGABIT, buckets=[[1]]), "give every layer with gradients, 0 to 0"),
        (lambda: simulate_step(FINE, 2, GIGABIT, buckets=[[0], [0]]), "in one bucket"),
        (lambda: simulate_step(FINE, 2, GIGABIT, buckets=[[0], []]), "no empty bucket"),
        (lambda: simulate_step(FINE, 2, GIGABIT, buckets=[0]), "give a list of lists"),
        (lambda: simulate_step(FINE, 2, GIGABIT, overlap=1), "overlap is 1"),
        (lambda: simulate_step(FINE, 2, GIGABIT, prefetch=-1), "prefetch is -1"),
        (lambda: simulate_step(FINE, 2, GIGABIT, micro_batches=0), "micro_batches is 0"),
        (lambda: simulate_step(FINE, 2, GIGABIT, optimizer_seconds=-1), "optimizer_seconds is -1"),
        (lambda: simulate_step(FINE, 2, GIGABIT, shard_size=2), "ddp has no shard groups"),
        (lambda: simulate_step(FINE, 4, GIGABIT, "hsdp"), "shard_size is None"),
        (lambda: simulate_step(FINE, 4, GIGABIT, "hsdp", shard_size=3), "shard_size is 3; .* divides world_size = 4"),
        (lambda: simulate_step(FINE, 4, GIGABIT, "hsdp", shard_size=2), "across is None; hsdp needs the link"),
        (lambda: simulate_step([Layer(5e307)] * 4, 2, GIGABIT), "forward_seconds is 5e\\+307; .* at most 1e\\+30"),
        (lambda: simulate_step(FINE, 4, GIGABIT, prefetch=7), "prefetch is 7, but ddp gathers no parameters"),
        (lambda: simulate_step(FINE, 4, GIGABIT, reshard=False), "reshard is False, but ddp gathers no parameters"),
        (lambda: simulate_step(FINE, 4, GIGABIT, "fsdp", bucket_bytes=5), "bucket_bytes is 5, but fsdp has no buckets"),
        (lambda: simulate_step(FINE, 4, GIGABIT, "fsdp", buckets=[[0]]), r"buckets is \[\[0\]\], but fsdp has no"),
        (lambda: simulate_step(FINE, 4, GIGABIT, bucket_bytes=5, buckets=[[0]]), "but buckets are given too"),
        (lambda: simulate_step(FINE, 4, GIGABIT, "fsdp", overlap=False, prefetch=5), "prefetch is 5, but overlap is"),
        (lambda: simulate_step(FINE, 4, GIGABIT, micro_batches=10**12), "micro_batches is 1000000000000; .* at most"),
        (lambda: layer_buckets(None), "layers is None; give a list of Layer"),
        (lambda: GIGABIT.alone(-1), "size is -1"),
        (lambda: GIGABIT.alone(1, steps=-3), "steps is -3"),
        (lambda: Layer(-1), "forward_seconds is -1"),
        (lambda: Layer(float("nan")), "forward_seconds is nan"),
        (lambda: Layer(1, gradient_bytes=float("inf")), "gradient_bytes is inf"),
        (lambda: overlap_law(1, 1, 1, 2, 1), "head is 2, but it is a part of backward"),
        (lambda: overlap_law(1, 1, 1, 1, -1), "tail is -1"),
    ],
)
def test_what_means_nothing_is_one_sentence(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_the_law_in_numbers():
    assert overlap_law(80, 160, 256, 20, 32) == 80 + 20 + 256  # the link is the bottleneck
    assert overlap_law(80, 160, 64, 20, 8) == 80 + 160 + 8  # compute is
    assert LawTerms(80, 160, 64, 20, 8).seconds == 248
    assert isinstance(simulate_step(FINE, 1, GIGABIT), Step)


def test_small_integers_of_numpy_do_not_overflow():
    layers = [Layer(np.float32(0.5), gradient_bytes=np.int32(2**30))] * 4
    step = simulate_step(
        layers, np.int8(4), Link(np.int32(2**30), concurrency=np.int8(1)), buckets=[[np.int8(3), 2, 1, 0]]
    )
    assert step.communication == 6 and step.seconds == 12
