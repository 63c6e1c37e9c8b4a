"""The kernel's counters: what really crossed the sockets, against the ring's rule and where gloo differs."""

import sys

import pytest
import torch
import torch.distributed as dist

from utils import launch, reduce_scatter_single
from utils.runtime import processes, wire
from utils.runtime.wire import WireBytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no TCP counters on this system")

S = 32 * 2**20


def all_reduce(rank):
    dist.all_reduce(torch.ones(S // 4))


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_an_all_reduce_moves_what_the_ring_says(ranks):
    run = launch(all_reduce, ranks)
    law = 2 * (ranks - 1) / ranks * S
    for wire_bytes, ring in zip(run.wire_bytes, run.ring_bytes, strict=True):
        assert ring == pytest.approx(law, rel=1e-9)
        assert wire_bytes.sent == pytest.approx(law, rel=0.01)
        assert wire_bytes.received == pytest.approx(law, rel=0.01)


def test_gloo_reduce_scatter_is_an_all_reduce_and_a_slice():
    run = launch(lambda rank: reduce_scatter_single(torch.empty(S // 16), torch.ones(S // 4)), 4)
    assert [w.sent / S for w in run.wire_bytes] == pytest.approx([1.5] * 4, rel=0.01)
    assert [r / S for r in run.ring_bytes] == pytest.approx([0.75] * 4)


def test_gloo_broadcast_is_a_tree():
    run = launch(lambda rank: dist.broadcast(torch.ones(S // 4), src=0), 4)
    assert [w.sent / S for w in run.wire_bytes] == pytest.approx([2, 1, 0, 0], abs=0.01)
    assert [w.received / S for w in run.wire_bytes] == pytest.approx([0, 1, 1, 1], abs=0.01)
    assert [r / S for r in run.ring_bytes] == [1, 1, 1, 0]


def test_joining_the_group_is_not_counted():
    run = launch(lambda rank: None, 4)
    assert run.wire_bytes == (WireBytes(0, 0),) * 4


def test_traffic_of_a_group_made_and_destroyed_in_the_run_is_counted():
    def own_group(rank):
        group = dist.new_group([0, 1])
        dist.all_reduce(torch.ones(S // 4), group=group)
        dist.destroy_process_group(group)

    run = launch(own_group, 2)
    assert [w.sent / S for w in run.wire_bytes] == pytest.approx([1, 1], rel=0.01)


def test_what_is_sent_is_received():
    run = launch(all_reduce, 4)
    assert sum(w.sent for w in run.wire_bytes) == sum(w.received for w in run.wire_bytes)


def test_without_counters_it_is_none_and_says_so(monkeypatch):
    def no_counters(rank):
        from utils.runtime import wire

        wire.read_counters = lambda *_: None

    monkeypatch.setattr(processes, "RANK_SETUP", [no_counters])
    run = launch(all_reduce, 2)
    assert run.wire_bytes is None
    assert "not measurable here" in run._repr_html_()
    assert run.ring_bytes == (S, S)


def test_counters_that_stand_still_are_not_a_measurement(monkeypatch):
    def pretend(rank):
        from utils.runtime import wire

        wire.read_counters = lambda *_: {}

    monkeypatch.setattr(processes, "RANK_SETUP", [pretend])
    assert launch(all_reduce, 2).wire_bytes is None


def test_counters_are_read_at_their_source(monkeypatch):
    """Ten per cent more at the counter is ten per cent more in the run: nothing else fills the field."""

    def ten_per_cent_more(rank):
        from utils.runtime import wire

        true = wire.read_counters
        wire.read_counters = lambda *left_out: {
            name: wire.WireBytes(int(1.1 * w.sent), int(1.1 * w.received)) for name, w in true(*left_out).items()
        }

    monkeypatch.setattr(processes, "RANK_SETUP", [ten_per_cent_more])
    assert launch(all_reduce, 2).wire_bytes[0].sent / S == pytest.approx(1.1, rel=0.01)


def test_this_process_can_read_its_own_counters():
    assert wire.read_counters() is not None
