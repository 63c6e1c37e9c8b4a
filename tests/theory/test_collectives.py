"""What collectives leave where, checked against a small simulation and against the traffic laws."""

import pytest

from utils.theory.collectives import LEAVES, Block, holdings, leaves, messages
from utils.theory.traffic import collective_bytes, received_bytes

KINDS = tuple(LEAVES)


def test_two_ranks_written_out():
    a0, a1, b0, b1 = Block((0,), 0), Block((0,), 1), Block((1,), 0), Block((1,), 1)
    sum0, sum1 = Block((0, 1), 0), Block((0, 1), 1)
    both = ((a0, a1), (b0, b1))
    one_each = ((a0, None), (None, b1))
    assert holdings("all_reduce", 2) == (both, ((sum0, sum1), (sum0, sum1)))
    assert holdings("reduce_scatter", 2) == (both, ((sum0, None), (None, sum1)))
    assert holdings("all_gather", 2) == (one_each, ((a0, b1), (a0, b1)))
    assert holdings("all_to_all", 2) == (both, ((a0, b0), (a1, b1)))
    assert holdings("scatter", 2, root=1) == (((None, None), (b0, b1)), ((b0, None), (None, b1)))
    assert holdings("gather", 2, root=1) == (one_each, ((a0, None), (a0, b1)))
    assert holdings("broadcast", 2, root=1) == (((None,), (b0,)), ((b0,), (b0,)))
    assert holdings("reduce", 2, root=1) == (((a0,), (b0,)), ((a0,), (Block((0, 1), 0),)))
    assert holdings("send", 2, root=1) == (((None,), (b0,)), ((b0,), (b0,)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 16])
def test_nothing_comes_from_nowhere(kind, n):
    for root in range(n):
        before, after = holdings(kind, n, root)
        assert len(before) == len(after) == n
        there = {(origin, block.chunk) for rank in before for block in rank if block for origin in block.origins}
        assert all((o, block.chunk) in there for rank in after for block in rank if block for o in block.origins)


def test_reduce_scatter_then_all_gather_is_all_reduce():
    """Each rank's only chunk after the reduce-scatter is what it brings to the all-gather."""
    for n in (2, 3, 8):
        scattered = holdings("reduce_scatter", n)[1]
        own = [next(block for block in rank if block) for rank in scattered]
        assert tuple(tuple(own) for _ in range(n)) == holdings("all_reduce", n)[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 16])
def test_the_messages_add_up_to_the_traffic_laws(kind, n):
    for root in range(n):
        sent, received = [0] * n, [0] * n
        for message in messages(kind, n, root):
            assert message.source != message.target
            sent[message.source] += message.share
            received[message.target] += message.share
        if kind == "send":
            assert (sum(sent), sum(received)) == ((n, n) if n > 1 else (0, 0))
            continue
        size = n * 1024  # divisible: the laws give whole numbers
        assert [share * 1024 for share in sent] == [collective_bytes(kind, size, n, r, root) for r in range(n)]
        assert [share * 1024 for share in received] == [received_bytes(kind, size, n, r, root) for r in range(n)]


def test_each_kind_says_in_words_what_it_leaves():
    assert leaves("broadcast", 4, root=2) == "every rank holds the buffer of rank 2"
    assert leaves("send", 4, root=3) == "rank 0 holds the buffer of rank 3 too"
    assert len({leaves(kind, 4) for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("law", [holdings, messages, leaves])
def test_bad_arguments_are_named(law):
    with pytest.raises(ValueError, match=r"kind is 'allgather'.*did you mean 'all_gather'"):
        law("allgather", 4)
    with pytest.raises(ValueError, match=r"world_size is 0; .*at least 1"):
        law("broadcast", 0)
    with pytest.raises(ValueError, match="root is 4, but a group of 4 has ranks 0 to 3"):
        law("broadcast", 4, 4)
