"""Small PNG files: a palette of at most 256 colours, no time stamp, no name of a program.

The suite's figures are flat fills and letters: a few colours fill nearly all pixels, the rest are blends at edges. As
a palette image such a figure takes about 20 kB instead of 60, in the notebook and on the way to a widget.
Source of the format: W3C, "Portable Network Graphics (PNG) Specification (Second Edition)", 2003.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PALETTE_IMAGE, _BITS = 3, 8


def encode(pixels: np.ndarray, level: int = 9) -> bytes:
    """PNG bytes of an image.

    pixels: unsigned bytes of shape (height, width, 3 or more); channels beyond red, green, blue are left out.
    level: zlib's, 1 (fast) to 9 (small).
    Colours that agree in the upper five bits of each channel are one; of these the 256 commonest are kept, and the
    others become the nearest of them. A flat fill keeps its exact colour.
    """
    height, width = pixels.shape[:2]
    if pixels.shape[2] != 4:
        pixels = np.dstack((pixels[..., :3], np.zeros((height, width, 1), np.uint8)))
    palette, indices = _palette(np.ascontiguousarray(pixels).reshape(-1, 4))
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with its filter: 0, none
    rows[:, 1:] = indices.reshape(height, width)
    header = struct.pack(">IIBBBBB", width, height, _BITS, _PALETTE_IMAGE, 0, 0, 0)
    return _SIGNATURE + b"".join(
        (
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", palette.tobytes()),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), level)),
            _chunk(b"IEND", b""),
        )
    )


def size(png: bytes) -> tuple[int, int]:
    """(width, height) of a PNG in pixels, from its header."""
    return struct.unpack(">II", png[16:24])


def _palette(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(palette of shape (at most 256, 3), index of each pixel) for pixels of shape (pixels, 4), all unsigned bytes.

    Neighbours mostly have the same colour, so runs of pixels are looked at, a pixel at a time as one number, and tables
    take the place of sorting: a slider's move has some milliseconds for this.
    """
    packed = pixels.view("<u4").ravel()  # red is the lowest byte
    starts = np.flatnonzero(np.concatenate(([True], packed[1:] != packed[:-1])))
    lengths = np.diff(starts, append=len(packed))
    colours = packed[starts]
    keys = (colours >> 3 & 31) << 10 | (colours >> 11 & 31) << 5 | (colours >> 19 & 31)
    counts = np.bincount(keys, weights=lengths, minlength=1 << 15)
    colour_of = np.zeros(1 << 15, "<u4")
    colour_of[keys] = colours
    fills = np.flatnonzero(lengths > 16)
    fills = fills[np.argsort(lengths[fills], kind="stable")]
    colour_of[keys[fills]] = colours[fills]  # of one key's fills the longest, written last, stays
    channels = colour_of.view(np.uint8).reshape(-1, 4)[:, :3]
    used = np.flatnonzero(counts)
    kept = used if len(used) <= 256 else np.sort(used[np.argsort(-counts[used], kind="stable")[:256]])
    index_of = np.zeros(1 << 15, np.uint8)
    index_of[used] = _nearest(channels[used], channels[kept])
    return channels[kept], np.repeat(index_of[keys], lengths)


def _nearest(colours: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """For each colour the index in `kept` of the one nearest in red, green and blue."""
    a, b = colours.astype(np.float32), kept.astype(np.float32)
    return ((b**2).sum(-1) - 2 * a @ b.T).argmin(axis=1)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
