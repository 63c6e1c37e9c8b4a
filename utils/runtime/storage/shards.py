"""Training data in shards: files of samples of equal size, read from front to back.

Few large files, because a store answers a request in milliseconds whatever its size: a shard of thousands of samples
pays for one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from utils.runtime.storage.accounting import note_read
from utils.runtime.storage.bucket import PIECE, TokenBucket
from utils.runtime.storage.paths import path_of, paths_of
from utils.theory.arguments import check_ranks, check_whole


def write_shards(folder: Path | str, shards: int, samples: int, sample_bytes: int) -> tuple[Path, ...]:
    """`shards` files of `samples` samples each. Sample number i of shard s is made of the byte (s + i) mod 251.

    Raises ValueError for sizes below 1 and for what is no path.
    """
    folder = path_of("folder", folder, "where the shards are written")
    for name, value in (("shards", shards), ("samples", samples), ("sample_bytes", sample_bytes)):
        check_whole(name, value, "a size of the data")
    paths = tuple(folder / f"shard-{number:05}.bin" for number in range(shards))
    for number, path in enumerate(paths):
        with open(path, "wb") as file:
            for sample in range(samples):
                file.write(bytes([(number + sample) % 251]) * sample_bytes)
    return paths


def shards_of(paths: tuple[Path, ...], rank: int, world_size: int) -> tuple[Path, ...]:
    """Those that a rank reads: every `world_size`-th, so that no two ranks read the same.

    Raises ValueError for a rank that is none of `world_size`, and for what is no list of paths.
    """
    check_ranks("world_size", world_size)
    check_whole("rank", rank, "one of the ranks", least=0, most=world_size - 1)
    return paths_of("paths", paths, "all shards")[rank::world_size]


def read_samples(path: Path | str, sample_bytes: int, bucket: TokenBucket | None = None) -> Iterator[bytes]:
    """The samples of one shard, one after the other; with a bucket, as fast as the store delivers.

    The bucket is asked for the bytes that the file has, and for no more: the end of a shard costs nothing.
    Raises ValueError if the file ends inside a sample.
    """
    check_whole("sample_bytes", sample_bytes, "the size of a sample")
    path = path_of("path", path, "a shard")
    with open(path, "rb", buffering=0) as file:
        left = os.fstat(file.fileno()).st_size
        while left and (sample := _read(file, min(left, sample_bytes), bucket)):
            left -= len(sample)
            if len(sample) < sample_bytes:
                raise ValueError(
                    f"{path.name} ends {len(sample)} bytes into a sample; samples have {sample_bytes} bytes: give the "
                    "size with which the shard was written"
                )
            yield sample


def _read(file, size: int, bucket: TokenBucket | None) -> bytes:  # noqa: ANN001
    """Up to `size` bytes, in pieces: the bucket is asked before each."""
    pieces, left = [], size
    while left:
        wanted = min(left, PIECE)
        if bucket is not None:
            bucket.take(wanted)
        piece = file.read(wanted)
        note_read(len(piece))
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
