"""What a reader of a shard asks its store for: the bytes of the file, and not one for its end."""

import pytest

from utils.runtime.storage.bucket import PIECE
from utils.runtime.storage.loader import Loader
from utils.runtime.storage.shards import read_samples, write_shards


class Account:
    """A store without a limit that notes what it is asked for."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def take(self, size: int) -> float:
        self.taken.append(size)
        return 0.0


@pytest.mark.parametrize(("samples", "sample_bytes"), [(1, 10), (4, 25_000), (3, PIECE), (2, 2 * PIECE + 1)])
def test_the_store_is_asked_for_the_bytes_of_the_shard(tmp_path, samples, sample_bytes):
    (path,) = write_shards(tmp_path, 1, samples, sample_bytes)
    store = Account()
    assert len(list(read_samples(path, sample_bytes, store))) == samples
    assert sum(store.taken) == samples * sample_bytes == path.stat().st_size
    assert max(store.taken) <= PIECE


def test_short_shards_cost_what_one_long_one_does(tmp_path):
    """A loader over many short shards: ends are met often, and none of them costs a sample's bytes."""
    store = Account()
    batches = list(Loader(write_shards(tmp_path, 6, 2, 100), 100, batch=3, bucket=store, prefetch=0))
    assert (len(batches), sum(store.taken)) == (4, 6 * 2 * 100)


def test_an_empty_shard_costs_nothing(tmp_path):
    (tmp_path / "empty").touch()
    store = Account()
    assert list(read_samples(tmp_path / "empty", 10, store)) == []
    assert store.taken == []


def test_a_file_that_ends_inside_a_sample_is_told(tmp_path):
    (path,) = write_shards(tmp_path, 1, 3, 10)
    store = Account()
    with pytest.raises(ValueError, match=r"ends 6 bytes into a sample"):
        list(read_samples(path, 12, store))
    assert sum(store.taken) == 30
