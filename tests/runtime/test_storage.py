"""Loaders read what the kernel counts, as fast as the store delivers; checkpoints stall as long as they take."""

import multiprocessing
import threading
import time

import pytest
import torch

from utils.runtime.host_copy import Copy, gpu_copy, host_copy
from utils.runtime.storage import accounting
from utils.runtime.storage.accounting import KERNEL, READER, bytes_read
from utils.runtime.storage.bucket import PIECE, TokenBucket
from utils.runtime.storage.checkpoint import write_state
from utils.runtime.storage.loader import Loader
from utils.runtime.storage.shards import read_samples, shards_of, write_shards
from utils.theory.units import MB, KiB

SAMPLE = 96 * KiB  # more than a piece, and no multiple of one


def test_shards_hold_the_samples_in_order(tmp_path):
    paths = write_shards(tmp_path, 3, 4, 10)
    assert [path.name for path in paths] == ["shard-00000.bin", "shard-00001.bin", "shard-00002.bin"]
    assert list(read_samples(paths[2], 10)) == [bytes([2 + i]) * 10 for i in range(4)]
    assert [shards_of(paths, rank, 2) for rank in range(2)] == [(paths[0], paths[2]), (paths[1],)]
    with pytest.raises(ValueError, match=r"shard-00000\.bin ends 4 bytes into a sample; samples have 12 bytes"):
        list(read_samples(paths[0], 12))


def test_bytes_are_counted_by_the_kernel_and_by_the_reader(tmp_path, monkeypatch):
    (path,) = write_shards(tmp_path, 1, 8, SAMPLE)
    before = bytes_read()
    list(read_samples(path, SAMPLE))
    counted = bytes_read() - before
    assert counted.by in (KERNEL, READER)
    assert 8 * SAMPLE <= counted.bytes <= 8 * SAMPLE + 4096
    monkeypatch.setattr(accounting, "_ACCOUNT", tmp_path / "none")
    before = bytes_read()
    list(read_samples(path, SAMPLE))
    assert bytes_read() - before == accounting.BytesRead(8 * SAMPLE, READER)


def test_a_bucket_lets_its_rate_pass(tmp_path):
    bucket = TokenBucket(tmp_path / "bucket", 4 * MB, burst=PIECE)
    begin = time.monotonic()
    waited = sum(bucket.take(PIECE) for _ in range(16))
    took = time.monotonic() - begin
    least = 15 * PIECE / (4 * MB)  # the first piece passes at once
    assert took >= least - 0.001 and waited <= took
    assert took < 3 * least  # a busy machine is late, but not for ever


def _taking(path, rate, pieces):
    bucket = TokenBucket(path, rate, burst=PIECE)
    for _ in range(pieces):
        bucket.take(PIECE)


def test_processes_share_a_bucket(tmp_path):
    rate, pieces = 8 * MB, 12
    context = multiprocessing.get_context("fork")
    TokenBucket(tmp_path / "bucket", rate)
    children = [context.Process(target=_taking, args=(tmp_path / "bucket", rate, pieces)) for _ in range(3)]
    begin = time.monotonic()
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert all(child.exitcode == 0 for child in children)
    assert time.monotonic() - begin >= (3 * pieces - 1) * PIECE / rate - 0.001


def test_a_pause_saves_up_no_more_than_the_burst(tmp_path):
    bucket = TokenBucket(tmp_path / "bucket", 1 * MB, burst=2 * PIECE)
    time.sleep(0.3)  # for 300 kB
    assert sum(bucket.take(PIECE) for _ in range(2)) < 0.1
    assert sum(bucket.take(PIECE) for _ in range(2)) > 0.05


@pytest.mark.parametrize("prefetch", [0, 1, 2])
def test_loaders_give_full_batches_in_order(tmp_path, prefetch):
    paths = write_shards(tmp_path, 2, 5, 3)
    batches = list(Loader(paths, 3, batch=4, prefetch=prefetch))
    assert [tuple(batch.shape) for batch in batches] == [(4, 3), (4, 3)] and batches[0].dtype == torch.uint8
    assert batches[0][:, 0].tolist() == [0, 1, 2, 3] and batches[1][:, 0].tolist() == [4, 1, 2, 3]


def test_without_reading_ahead_a_step_is_compute_and_loading(tmp_path):
    pieces, compute = 4, 0.030
    paths = write_shards(tmp_path, 1, 8, pieces * PIECE)
    rate = PIECE / 0.010  # a sample takes 40 ms, of which the burst gives 10 after a pause
    loader = Loader(paths, pieces * PIECE, 1, TokenBucket(tmp_path / "bucket", rate, burst=PIECE), 0)
    begin = time.monotonic()
    for _ in loader:
        time.sleep(compute)
    took = time.monotonic() - begin
    assert took >= 8 * compute + 8 * (pieces - 1) * 0.010 - 0.002  # however idle the machine is
    assert 8 * (pieces - 1) * 0.010 - 0.002 <= loader.waited <= took


class Counted(TokenBucket):
    """A bucket that counts how often it was asked."""

    asked = 0

    def take(self, size):
        self.asked += 1
        return super().take(size)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_reading_ahead_goes_on_while_the_model_computes(tmp_path, prefetch):
    bucket = Counted(tmp_path / "bucket", 100 * MB, burst=PIECE)
    for number, _ in enumerate(Loader(write_shards(tmp_path, 1, 6, PIECE), PIECE, 1, bucket, prefetch), start=1):
        ahead = min(number + prefetch, 6)
        end = time.monotonic() + 5
        while bucket.asked < ahead and time.monotonic() < end:
            time.sleep(0.001)
        assert ahead <= bucket.asked <= ahead + bool(prefetch)  # one more is being read


def test_a_readers_error_comes_out_and_its_thread_ends(tmp_path):
    (path,) = write_shards(tmp_path, 1, 3, 10)
    with pytest.raises(ValueError, match="ends 6 bytes into a sample"):
        list(Loader((path,), 12, 1))
    with pytest.raises(FileNotFoundError):
        list(Loader((tmp_path / "none",), 12, 1))
    iterator = iter(Loader(write_shards(tmp_path, 1, 50, 10), 10, 1))
    next(iterator)
    iterator.close()
    end = time.monotonic() + 5
    while any(thread.name == "read ahead" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_checkpoint_is_stored_as_it_was_when_asked_for(tmp_path, asynchronous):
    state = {"weights": torch.ones(1 << 18), "nested": {"steps": [torch.tensor(7.0)]}, "name": "x"}
    bucket = TokenBucket(tmp_path / "bucket", 4 * MB, burst=PIECE)
    written = write_state(state, tmp_path / "checkpoint", bucket, asynchronous)
    state["weights"].zero_()  # training goes on
    assert written.bytes == (tmp_path / "checkpoint").stat().st_size >= 1 << 20
    stored = torch.load(tmp_path / "checkpoint")
    assert stored["weights"].eq(1).all() and stored["nested"]["steps"][0].item() == 7 and stored["name"] == "x"
    least = (written.bytes - PIECE) / (4 * MB)
    assert written.seconds >= least - 0.001
    assert (written.stall >= written.seconds) is not asynchronous
    assert not (tmp_path / "checkpoint.unfinished").exists()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_checkpoint_that_fails_says_so_and_keeps_the_one_before(tmp_path, asynchronous):
    path = tmp_path / "checkpoint"
    write_state({"step": 1}, path)
    with pytest.raises(Exception, match="pickle"):
        write_state({"step": lambda: 2}, path, asynchronous=asynchronous).wait()
    assert torch.load(path) == {"step": 1}
    with pytest.raises(FileNotFoundError):
        write_state({}, tmp_path / "none" / "checkpoint", asynchronous=asynchronous).wait()


def test_a_host_copy_copies_and_takes_time():
    threads = torch.get_num_threads()
    copy = host_copy(1 << 20, rounds=2)
    assert copy.size == 1 << 20 and copy.seconds > 0 and copy.rate == copy.size / copy.seconds
    assert torch.get_num_threads() == threads
    assert Copy(10, 2.0).rate == 5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: TokenBucket(path, 0), "bytes_per_second is 0"),
        (lambda path: TokenBucket(path, 1, burst=-1), "burst is -1"),
        (lambda path: TokenBucket(path, 1).take(-1), "size is -1"),
        (lambda path: write_shards(path.parent, 0, 1, 1), "shards is 0"),
        (lambda path: list(read_samples(path, 0)), "sample_bytes is 0"),
        (lambda path: Loader((path,), 1, 0), "batch is 0"),
        (lambda path: Loader((path,), 1, 1, prefetch=-1), "prefetch is -1"),
        (lambda path: write_state({}, path, asynchronous="yes"), "asynchronous is 'yes'"),
        (lambda path: host_copy(0), "size is 0"),
        (lambda path: host_copy(1, rounds=0), "rounds is 0"),
        (lambda path: gpu_copy(0, True), "size is 0"),
        (lambda path: gpu_copy(1, "yes"), "pinned is 'yes'"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(call, words, tmp_path):
    with pytest.raises(ValueError, match=words) as error:
        call(tmp_path / "file")
    assert "\n" not in str(error.value)


def test_a_gpu_copies_faster_into_page_locked_memory_and_without_one_it_says_so(monkeypatch):
    if torch.cuda.is_available():
        assert gpu_copy(1 << 28, pinned=True).rate > gpu_copy(1 << 28, pinned=False).rate
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match="no GPU here to copy from: use host_copy"):
        gpu_copy(1, True)
