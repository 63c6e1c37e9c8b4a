"""The ring step by step, its cost, and nccl-tests' table."""

import csv
import re

import pytest

from utils.notebooks.files import ROOT
from utils.theory.collectives import Block, holdings
from utils.theory.links import AlphaBeta
from utils.theory.nccl_table import TYPES, nccl_header, nccl_line, nccl_table
from utils.theory.ring import ring_cost, ring_states
from utils.theory.traffic import collective_bytes
from utils.theory.units import GB, MiB


@pytest.mark.parametrize("n", range(1, 10))
def test_the_ring_ends_where_an_all_reduce_does(n):
    states = ring_states(n)
    assert len(states) == 2 * (n - 1) + 1
    before, after = holdings("all_reduce", n)
    assert states[0].held == before
    assert states[-1].held == after


@pytest.mark.parametrize("n", range(2, 10))
def test_half_way_each_rank_has_its_own_part_of_the_sum_as_reduce_scatter_leaves_it(n):
    half = ring_states(n)[n - 1].held
    assert all(half[rank][rank] == Block(tuple(range(n)), rank) for rank in range(n))
    complete = [(rank, part) for rank in range(n) for part in range(n) if len(half[rank][part].origins) == n]
    assert complete == [(rank, rank) for rank in range(n)]


@pytest.mark.parametrize("n", range(2, 10))
def test_each_rank_sends_a_part_a_step_to_its_neighbour_and_so_what_the_law_says(n):
    for state in ring_states(n)[1:]:
        assert [t.source for t in state.transfers] == list(range(n))
        assert all(t.target == (t.source + 1) % n for t in state.transfers)
        assert len({t.part for t in state.transfers}) == n
        assert state.adds == (state.step < n)
    sent = sum(len(state.transfers) for state in ring_states(n)) / n  # parts a rank
    assert sent / n == pytest.approx(collective_bytes("all_reduce", 1.0, n))


def test_no_origin_is_ever_added_twice():
    for state in ring_states(8):
        for row in state.held:
            assert all(len(set(block.origins)) == len(block.origins) for block in row)


def test_cost_in_numbers():
    cost = ring_cost(8 * GB, 4, AlphaBeta(1e-3, 1 / GB))
    assert (cost.steps, cost.sent, cost.buffer) == (6, 12 * GB, 2 * GB)
    assert cost.latency_seconds == pytest.approx(6e-3)
    assert cost.seconds == pytest.approx(12.006)
    assert cost.tree_seconds == pytest.approx(4 * 8.001)
    assert cost.algbw == pytest.approx(8 * GB / 12.006)
    assert cost.busbw == pytest.approx(12 * GB / 12.006)


@pytest.mark.parametrize("n", [4, 5, 8, 64, 1024])
def test_at_the_crossover_ring_and_tree_take_the_same_time(n):
    link = AlphaBeta(5e-3, 1 / (0.125 * GB))
    there = ring_cost(ring_cost(1, n, link).crossover, n, link)
    assert there.seconds == pytest.approx(there.tree_seconds)
    assert ring_cost(2 * there.total_bytes, n, link).seconds < ring_cost(2 * there.total_bytes, n, link).tree_seconds


def test_up_to_three_ranks_the_ring_is_never_slower():
    for n in (1, 2, 3):
        assert ring_cost(1 * MiB, n, AlphaBeta(1.0, 1e-9)).crossover == 0


def test_one_rank_and_no_bytes_cost_nothing():
    alone = ring_cost(1 * MiB, 1, AlphaBeta(1e-3, 1e-9))
    assert (alone.sent, alone.seconds, alone.algbw, alone.busbw, alone.buffer) == (0, 0, 0, 0, 0)
    assert ring_cost(0, 4, AlphaBeta(0, 1e-9)).busbw == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-1, 4, AlphaBeta(0, 1e-9)), "total_bytes is -1"),
        ((1, 0, AlphaBeta(0, 1e-9)), "world_size is 0"),
        ((1, True, AlphaBeta(0, 1e-9)), "world_size is True"),
        ((1, 4, 1e-9), "link is 1e-09"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(arguments, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        ring_cost(*arguments)
    with pytest.raises(ValueError, match="world_size is 0; it is a number of ranks"):
        ring_states(0)


def test_a_line_has_nccl_tests_columns():
    header, units = nccl_header().splitlines()
    assert header.split() == ["#", "size", "count", "type", "redop", "root", "time", "algbw", "busbw"]
    assert units.split() == ["#", "(B)", "(elements)", "(us)", "(GB/s)", "(GB/s)"]
    line = nccl_line("all_reduce", 33554432, 8, 207.65e-6)
    assert line.split() == ["33554432", "8388608", "float", "sum", "-1", "207.7", "161.59", "282.78"]
    assert len(line) == len(header) == len(units)


PUBLISHED = [
    row
    for row in csv.DictReader((ROOT / "utils/theory/data/busbw_sweeps.csv").read_text().splitlines())
    if row["microseconds"] and row["busbw_GBps"]
]


def test_published_bus_bandwidths_come_out_as_printed():
    assert len(PUBLISHED) > 50
    for row in PUBLISHED:
        ranks = int(row["nodes"]) * int(row["gpus_per_node"])
        line = nccl_line(row["kind"], int(row["size_bytes"]), ranks, float(row["microseconds"]) * 1e-6)
        # Times are printed with four digits, so a bandwidth computed from them may be off in its last one.
        assert float(line.split()[-1]) == pytest.approx(float(row["busbw_GBps"]), rel=2e-3, abs=0.011), row


def test_counts_are_those_of_one_rank_where_ranks_hold_parts():
    assert nccl_line("all_gather", 32 * MiB, 8, 1e-3, "bfloat16").split()[1:5] == ["2097152", "bfloat16", "none", "-1"]
    assert nccl_line("broadcast", 32 * MiB, 8, 1e-3, root=3).split()[2:5] == ["float", "none", "3"]
    assert set(TYPES) >= {"float32", "float16", "bfloat16", "int64"}


def test_the_table_ends_with_the_mean_and_refuses_what_it_cannot_print():
    table = nccl_table("all_reduce", 2, [(10**9, 1.0), (10**9, 0.5)])
    assert table.splitlines()[-1] == "# Avg bus bandwidth    : 1.5"
    with pytest.raises(ValueError, match=r"points is \[\]; give pairs"):
        nccl_table("all_reduce", 2, [])
    with pytest.raises(ValueError, match="dtype is 'float'"):
        nccl_line("all_reduce", 4, 2, 1.0, "float")
    with pytest.raises(ValueError, match=r"total_bytes is 4\.5"):
        nccl_line("all_reduce", 4.5, 2, 1.0)
