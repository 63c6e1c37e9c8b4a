"""What the controls of every calculator share: how they are labelled, what they offer, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from utils.theory.arguments import unknown
from utils.theory.units import GB, GiB, plain, shown

MEMORIES: dict[str, int] = {
    **{f"{size} GB": size * GB for size in (16, 24, 32, 40, 48, 80)},
    "80 GiB": 80 * GiB,
    **{f"{size} GB": size * GB for size in (96, 141, 192)},
}
GPUS = tuple(2**power for power in range(11))  # 1 to 1024
SEQUENCES = tuple(2**power for power in range(9, 18))  # 512 to 131,072
MANY = 20  # more names than this are not all listed in an error
MICRO_BATCHES = tuple(2**power for power in range(7))  # 1 to 64


def named(label: str, tooltip: str, width: int, label_width: int) -> dict[str, Any]:
    """Label, tooltip and sizes in pixels, for a control's constructor."""
    return {
        "description": label,
        "tooltip": tooltip,
        "layout": {"width": f"{width}px"},
        "style": {"description_width": f"{label_width}px"},
    }


def nearest(offered: Sequence[float], wanted: float) -> float:
    """What the control offers that is nearest to `wanted`; `offered` rises."""
    within = min(max(wanted, offered[0]), offered[-1])  # infinity is as far from one as from another
    return min(offered, key=lambda each: abs(each - within))


def number(name: str, value: Any) -> float:
    """`value` as Python's own number. Raises ValueError if it is none, or NaN."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        raise ValueError(f"{name} is {shown(value)}; give a number")
    return plain(value)


class Setting:
    """An attribute of a calculator that reads and moves its control, the attribute of the same name behind a `_`.

    taken: from (the attribute's name, what it is set to) to the control's new value.
    """

    def __init__(self, doc: str, taken: Callable[[str, Any], Any]) -> None:
        self.__doc__ = doc
        self._taken = taken

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, calculator: Any, owner: type | None = None) -> Any:
        return self if calculator is None else getattr(calculator, f"_{self._name}").value

    def __set__(self, calculator: Any, value: Any) -> None:
        getattr(calculator, f"_{self._name}").value = self._taken(self._name, value)


def name_control(offered: Sequence[str], doc: str) -> Setting:
    """One of the names `offered`. Another raises ValueError, in one sentence with the nearest names."""

    def taken(name: str, value: Any) -> str:
        if value not in offered:
            few = f"choose one of {len(offered)} names, such as {', '.join(offered[:3])}"
            raise ValueError(unknown(name, value, offered, few if len(offered) > MANY else ""))
        return value

    return Setting(doc, taken)


def number_control(offered: Sequence[float], doc: str) -> Setting:
    """The number in `offered` that is nearest. Raises ValueError for what is no number."""
    return Setting(doc, lambda name, value: nearest(offered, number(name, value)))


def flag_control(doc: str) -> Setting:
    """True or False."""
    return Setting(doc, lambda _name, value: bool(value))
