"""What operations put on links, and the timetable of links: without ranks."""

import pytest

from utils import launch
from utils.runtime.pacer_booking import Booking, Part
from utils.runtime.pacer_loads import inward, load, outward
from utils.runtime.shared import SharedLock, shared_numbers
from utils.theory.traffic import KINDS, collective_bytes, received_bytes

COLLECTIVES = [kind for kind in KINDS if kind not in ("send", "recv")]


@pytest.mark.parametrize("kind", COLLECTIVES)
@pytest.mark.parametrize(("n", "root"), [(2, 0), (2, 1), (3, 1), (4, 0), (5, 3), (8, 7)])
def test_with_a_rank_a_node_a_link_carries_what_the_ring_says(kind, n, root):
    shares = dict(load(kind, tuple(range(n)), root).shares)
    for rank in range(n):
        assert shares.get(outward(rank), 0) == pytest.approx(collective_bytes(kind, 1, n, rank, root))
        assert shares.get(inward(rank), 0) == pytest.approx(received_bytes(kind, 1, n, rank, root))


@pytest.mark.parametrize(
    ("kind", "nodes", "busiest", "crossings"),
    [
        ("all_reduce", (0, 0, 0, 0), 0, 0),
        ("all_reduce", (0, 1), 1, 2),
        ("all_reduce", (0, 1, 2, 3), 1.5, 6),
        ("all_reduce", (0, 0, 1, 1), 1.5, 3),  # one of two edges crosses: three of six steps
        ("all_reduce", (0, 1, 0, 1), 3, 6),  # every edge crosses, two leave each node
        ("all_gather", (0, 0, 1, 1), 0.75, 2),  # of three steps, the first and the last
        ("reduce_scatter", (0, 1, 2), 2 / 3, 2),
        ("broadcast", (0, 0, 1, 1), 1, 1),
        ("reduce", (0, 1, 2, 3), 1, 3),
        ("all_to_all", (0, 0, 1, 1), 1, 1),  # two ranks, each with two quarters for the other node
        ("gather", (0, 0, 1, 1), 0.5, 1),
        ("scatter", (0, 1, 2, 3), 0.75, 1),
        ("barrier", (0, 1, 2, 3), 0, 6),
        ("send", (0, 1), 1, 1),
        ("recv", (0, 1), 1, 1),
        ("send", (1, 1), 0, 0),
    ],
)
def test_ranks_of_a_node_share_its_link(kind, nodes, busiest, crossings):
    found = load(kind, nodes)
    assert max((share for _, share in found.shares), default=0) == pytest.approx(busiest)
    assert found.crossings == crossings


def part(sequence, me=0, size=1000, kind="all_reduce", channel="world", nodes=(0, 1)):
    return Part(channel, sequence, len(nodes), me, size, load(kind, nodes))


@pytest.fixture
def booking(tmp_path):
    """100 B/s a link, so that an all-reduce of 1000 B between two nodes takes 10 s and two latencies of 1 s."""
    return Booking(str(tmp_path), 3, 100.0, 1.0)


def test_the_last_to_join_begins_an_operation(booking, tmp_path):
    booking.join(part(1, me=0), 50.0)
    Booking(str(tmp_path), 3, 100.0, 1.0).join(part(1, me=1), 53.0)  # another rank's view of the same timetable
    assert booking.end(part(1)) == 53 + 10 + 2
    assert Booking(str(tmp_path), 3, 100.0, 1.0).end(part(1, me=1)) == 65


def test_links_serve_one_operation_after_the_other(booking):
    for me in (0, 1):
        booking.join(part(1, me), 0.0)
        booking.join(part(2, me, size=1), 0.1)
    assert booking.end(part(2)) == pytest.approx(10 + 0.01 + 2)  # the latency keeps no link from the next one
    assert booking.end(part(1)) == 12
    for me in (0, 1):
        booking.join(part(1, me, channel="others", nodes=(1, 2)), 3.0)
    assert booking.end(part(1, channel="others", nodes=(1, 2))) == pytest.approx(10.01 + 10 + 2)


def test_other_links_and_other_directions_are_free(booking):
    for me in (0, 1):
        booking.join(part(1, me, kind="send", channel="0 to 1"), 0.0)
        booking.join(part(1, me, kind="send", channel="1 to 0", nodes=(1, 0)), 0.0)
        booking.join(part(1, me, kind="send", channel="0 to 2", nodes=(0, 2)), 0.0)
    assert booking.end(part(1, kind="send", channel="0 to 1")) == 11
    assert booking.end(part(1, kind="send", channel="1 to 0", nodes=(1, 0))) == 11
    assert booking.end(part(1, kind="send", channel="0 to 2", nodes=(0, 2))) == 21


def test_who_joins_later_than_was_waited_for_waits_on(booking):
    booking.join(part(1, me=0, kind="broadcast"), 0.0)
    assert booking.end(part(1, me=0, kind="broadcast")) == 11  # the root saw nobody
    booking.join(part(1, me=1, kind="broadcast"), 100.0)
    assert booking.end(part(1, me=1, kind="broadcast")) == 111


def test_an_uneven_exchange_is_as_long_as_its_busiest_sender(booking):
    booking.join(part(1, me=0, size=200, kind="all_to_all"), 0.0)
    booking.join(part(1, me=1, size=600, kind="all_to_all"), 0.0)
    assert booking.end(part(1, kind="all_to_all")) == 3 + 1


def test_entries_are_used_again(booking):
    for sequence in range(1, 2100):
        for me in (0, 1):
            booking.join(part(sequence, me, size=0), float(sequence))
        assert booking.end(part(sequence, size=0)) == sequence + 2


def count(rank, folder):
    lock, numbers = SharedLock(f"{folder}/lock"), shared_numbers(folder, "count", "all", 1, "q")
    for _ in range(300):
        with lock:
            numbers[0] += 1


def test_the_lock_is_held_by_one_rank_at_a_time(tmp_path):
    launch(count, 3, str(tmp_path))
    assert shared_numbers(str(tmp_path), "count", "all", 1, "q")[0] == 900
