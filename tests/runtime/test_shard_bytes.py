"""What a reader of a shard asks its store for: the bytes of the file, and not one for its end; and what is no shard."""

import pytest

from utils.runtime.storage.bucket import PIECE, TokenBucket
from utils.runtime.storage.loader import Loader
from utils.runtime.storage.shards import read_samples, shards_of, write_shards


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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: write_shards(None, 1, 1, 1), "folder is None; it is where the shards are written"),
        (lambda path: list(read_samples(3, 1)), "path is 3; it is a shard"),
        (lambda path: TokenBucket(b"bucket", 1), "path is b'bucket'; it is the file that all readers share"),
        (lambda path: TokenBucket("", 1), "path is ''"),
        (lambda path: Loader(path, 1, 1), "paths is .*; it is the shards to read: give a list or a tuple"),
        (lambda path: Loader([path, 5], 1, 1), r"paths\[1\] is 5"),
        (lambda path: Loader([path], 0, 1), "sample_bytes is 0"),
        (lambda path: shards_of([path], 2, 2), "rank is 2; .* at most 1"),
        (lambda path: shards_of([path], 0, 0), "world_size is 0"),
        (lambda path: shards_of("abc", 0, 1), "paths is 'abc'"),
    ],
)
def test_what_is_no_path_or_no_reader_is_refused_in_one_sentence(call, words, tmp_path):
    with pytest.raises(ValueError, match=words) as error:
        call(tmp_path / "file")
    assert "\n" not in str(error.value)


def test_a_path_may_be_a_text(tmp_path):
    (path,) = write_shards(str(tmp_path), 1, 2, 10)
    assert len(list(Loader([str(path)], 10, 2))) == 1
    assert shards_of([str(path)], 0, 1) == (path,)
