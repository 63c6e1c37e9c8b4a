"""Lines of nccl-tests' table: what everyone who measures collectives on GPUs prints and reads.

Columns, widths and roundings follow NVIDIA/nccl-tests, src/common.cu, without the columns of the in-place run and of
wrong elements. Sizes are bytes, times microseconds, bandwidths GB/s of 10**9 bytes per second. S is nccl-tests' size of
each collective, see `utils.theory.traffic`.
"""

from __future__ import annotations

from collections.abc import Iterable

from utils.theory.arguments import check_choice, check_whole
from utils.theory.traffic import algorithm_bandwidth, bus_bandwidth, check_group
from utils.theory.units import GB, plain, shown

#: nccl-tests' name of an element type, by its size in bytes as `torch` names it.
TYPES: dict[str, tuple[str, int]] = {
    "float32": ("float", 4),
    "float64": ("double", 8),
    "float16": ("half", 2),
    "bfloat16": ("bfloat16", 2),
    "int32": ("int32", 4),
    "int64": ("int64", 8),
    "uint8": ("uint8", 1),
}
_REDUCING = ("all_reduce", "reduce_scatter", "reduce")
_ROOTED = ("broadcast", "reduce", "gather", "scatter")
_WIDTHS = (11, 12, 8, 6, 6, 7, 6, 6)
_PER_RANK = ("all_gather", "reduce_scatter", "gather", "scatter", "all_to_all")  # counted by one rank's part


def nccl_header() -> str:
    """The two lines above the columns."""
    names = ("size", "count", "type", "redop", "root", "time", "algbw", "busbw")
    units = ("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)")
    return "\n".join(f"#{_columns(each)}" for each in (names, units))


def _columns(cells: tuple[object, ...]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


def nccl_line(
    kind: str, total_bytes: int, world_size: int, seconds: float, dtype: str = "float32", root: int = 0
) -> str:
    """One line: S, elements, type, reduction, root, time, algbw, busbw.

    kind, total_bytes (S), world_size, seconds: as for `traffic.bus_bandwidth`, errors likewise. dtype: in `TYPES`.
    root: printed where the collective has one, else -1.
    """
    check_choice("dtype", dtype, TYPES)
    check_group(kind, world_size, root)
    check_whole("total_bytes", total_bytes, "a size in bytes", least=0)
    busbw = bus_bandwidth(kind, total_bytes, world_size, seconds) / GB
    algbw = algorithm_bandwidth(total_bytes, seconds) / GB
    name, itemsize = TYPES[dtype]
    count = plain(total_bytes) // itemsize // (int(world_size) if kind in _PER_RANK else 1)
    redop = "sum" if kind in _REDUCING else "none"
    shown_root = int(root) if kind in _ROOTED else -1
    cells = (plain(total_bytes), count, name, redop, shown_root, _time(seconds), f"{algbw:.2f}", f"{busbw:.2f}")
    return f" {_columns(cells)}"


def nccl_table(kind: str, world_size: int, points: Iterable[tuple[int, float]], dtype: str = "float32") -> str:
    """The whole table for measured (S, seconds), with the mean bus bandwidth as its last line, as nccl-tests has it."""
    try:
        measured = [(size, seconds) for size, seconds in points]
    except (TypeError, ValueError):
        measured = []
    if not measured:
        raise ValueError(f"points is {shown(points)}; give pairs of bytes and seconds, such as [(33554432, 0.002)]")
    lines = [nccl_line(kind, size, world_size, seconds, dtype) for size, seconds in measured]
    mean = sum(bus_bandwidth(kind, size, world_size, seconds) for size, seconds in measured) / len(measured) / GB
    return "\n".join([nccl_header(), *lines, f"# Avg bus bandwidth    : {mean:g}"])


def _time(seconds: float) -> str:
    """Microseconds with as many decimals as nccl-tests gives them."""
    microseconds = float(seconds) * 1e6
    decimals = 0 if microseconds >= 10000 else 1 if microseconds >= 100 else 2
    return f"{microseconds:.{decimals}f}"
