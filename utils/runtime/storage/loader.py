"""Batches from shards, read ahead by a thread while the model computes.

loader = Loader(paths, sample_bytes, batch=8, bucket=bucket, prefetch=2)
for batch in loader:           # a tensor of bytes, shape (batch, sample_bytes)
    ...
loader.waited                  # seconds in which the step stood still for its data
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from utils.runtime.storage.bucket import TokenBucket
from utils.runtime.storage.paths import paths_of
from utils.runtime.storage.shards import read_samples
from utils.theory.arguments import check_whole

_END = object()


class Loader:
    """Iterating gives batches of shape (batch, sample_bytes), uint8; a last batch that is not full is left out.

    prefetch: how many batches are read ahead at most. With 0 a batch is read when it is asked for, and the step is
        compute *and* loading; with 1 or more it is the longer of the two.
    waited: seconds that the loop over the batches has waited for them so far.
    An error of the reader is raised in the loop.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        sample_bytes: int,
        batch: int,
        bucket: TokenBucket | None = None,
        prefetch: int = 2,
    ) -> None:
        check_whole("batch", batch, "how many samples a step takes")
        check_whole("prefetch", prefetch, "how many batches are read ahead", least=0)
        check_whole("sample_bytes", sample_bytes, "the size of a sample")
        self._paths = paths_of("paths", paths, "the shards to read")
        self._sample_bytes, self._batch, self._bucket = sample_bytes, batch, bucket
        self._prefetch = prefetch
        self.waited = 0.0

    def __iter__(self) -> Iterator[torch.Tensor]:
        batches = self._ahead() if self._prefetch else self._batches()
        while True:
            begin = time.perf_counter()
            batch = next(batches, None)
            self.waited += time.perf_counter() - begin
            if batch is None:
                return
            yield batch

    def _batches(self) -> Iterator[torch.Tensor]:
        samples = []
        for path in self._paths:
            for sample in read_samples(path, self._sample_bytes, self._bucket):
                samples.append(torch.frombuffer(bytearray(sample), dtype=torch.uint8))
                if len(samples) == self._batch:
                    yield torch.stack(samples)
                    samples = []

    def _ahead(self) -> Iterator[torch.Tensor]:
        """The same, read by a thread. The queue holds what is ready; one more batch is being read."""
        ready: queue.Queue = queue.Queue(maxsize=self._prefetch)
        leave = threading.Event()

        def put(item: object) -> bool:
            while not leave.is_set():
                try:
                    ready.put(item, timeout=0.05)
                    return True
                except queue.Full:
                    continue
            return False

        def read() -> None:
            try:
                if all(map(put, self._batches())):
                    put(_END)
            except BaseException as error:
                put(error)

        threading.Thread(target=read, daemon=True, name="read ahead").start()
        try:
            while (item := ready.get()) is not _END:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            leave.set()
