"""A number the learner commits to before a run, and what became of it.

    guess = prediction("How many S does each rank send in an all-reduce of S bytes on 4 ranks?", 1.5, unit="S")
    guess.compare(run.wire_bytes[0].sent / S, law=collective_bytes("all_reduce", S, 4) / S)

shows a table *predicted, measured, difference*. Leave the answer out (or `None`) and the measurement is shown
all the same, with the words "no prediction". Only a counter's, a clock's or a ledger's value may be passed as
`measured`; pass `None` where this machine has no such counter and the table says "not measurable here".

`comparison({"all_reduce": (1.5, measured), ...}, unit="S")` draws the same table for several laws at once.

What is printed is a function of the *rounded* measurement alone (`digits` places after the point), so a stored
output stays the same as long as the measurement does within that rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from numbers import Integral
from typing import Any

from utils.checks.drawing import BAD, GOOD, MIDDLING, NEUTRAL, html_table, text_table
from utils.checks.verdict import with_article


class _OneSentence:
    """An error that a notebook shows as its sentence alone."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__mro__[2].__name__}: {self}"]


class NotANumber(_OneSentence, TypeError):
    """Something that is not one number stands where one belongs."""


class NotUsable(_OneSentence, ValueError):
    """The number is not finite, or out of range."""


HEADER = ("", "predicted", "measured", "difference", "")
NO_PREDICTION = "no prediction"
NOT_MEASURABLE = "not measurable here"

FACTORS = ("S",)  # units that stand for a size, of which the answer is a multiple
ABSURD = 1e4  # no law here gives such a multiple: the size itself has been multiplied in
_ROWS = "a dict such as {'all_reduce': (predicted, measured)}"
_FACTOR_ALONE = "the unit {unit} is the size already: give the factor alone, such as 1.5"


@dataclass(frozen=True)
class Row:
    """One prediction beside one measurement, both in the same unit; either may be missing (None)."""

    label: str
    predicted: float | None
    measured: float | None
    unit: str = ""
    digits: int = 2

    @property
    def rounded(self) -> float | None:
        """The measurement as it is shown: `digits` places after the point."""
        return None if self.measured is None else round(self.measured, self.digits) + 0.0

    @property
    def difference(self) -> float | None:
        """(predicted - measured) / measured; None if either is missing or only the measurement is 0."""
        if self.predicted is None or self.rounded is None:
            return None
        if math.isclose(self.predicted, self.rounded, rel_tol=1e-9, abs_tol=0.5 * 10.0**-self.digits):
            return 0.0
        return (self.predicted - self.rounded) / abs(self.rounded) if self.rounded else None

    @property
    def band(self) -> str:
        """In words: within 10 %, 10 to 30 % off, more than 30 % off; empty where there is nothing to compare."""
        if self.predicted is None or self.rounded is None:
            return ""
        if self.difference is None:
            return "more than 30 % off: the measurement is 0"
        if self.absurd:
            return _FACTOR_ALONE.format(unit=self.unit)
        off = abs(self.difference)
        return "within 10 %" if off < 0.1 else "10 to 30 % off" if off <= 0.3 else "more than 30 % off"

    @property
    def absurd(self) -> bool:
        """True if the prediction can only be a size, where a multiple of one is asked for."""
        return self.unit in FACTORS and self.predicted is not None and abs(self.predicted) > ABSURD

    @property
    def colour(self) -> str:
        return {"w": GOOD, "1": MIDDLING, "m": BAD, "t": BAD, "": NEUTRAL}[self.band[:1]]

    def cells(self) -> tuple[str, ...]:
        """Label, predicted, measured, difference, band."""
        predicted = NO_PREDICTION if self.predicted is None else _shown(self.predicted, self.digits, self.unit)
        measured = NOT_MEASURABLE if self.rounded is None else _shown(self.rounded, self.digits, self.unit)
        if self.predicted is None or self.rounded is None or self.absurd:
            difference = ""
        elif self.difference is None:
            difference = _signed(_shown(self.predicted - self.rounded, self.digits, self.unit))
        else:
            difference = _signed(f"{100 * self.difference:.0f} %")
        return (self.label, predicted, measured, difference, self.band)


@dataclass(frozen=True)
class Comparison:
    """A table *predicted, measured, difference* that draws itself as text and as HTML."""

    caption: str
    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        table = text_table(HEADER, [row.cells() for row in self.rows])
        return f"{self.caption}\n{table}" if self.caption else table

    def _repr_html_(self) -> str:
        table = html_table(HEADER, [row.cells() for row in self.rows], [row.colour for row in self.rows])
        return f"<p>{escape(self.caption)}</p>{table}"


@dataclass(frozen=True)
class Prediction:
    """The learner's number (None: none yet) for a question, in `unit`. Made by `prediction`."""

    question: str
    answer: float | None = None
    unit: str = ""

    def compare(self, measured: Any, law: Any = None, digits: int = 2) -> Comparison:
        """The learner's number, and the law's if given, beside the measurement.

        measured  what a counter, a clock or a ledger gave, in this prediction's unit; None: not measurable here
        law       what `utils.theory` says, in the same unit
        digits    places after the point to which the measurement is rounded before anything is shown
        Raises TypeError or ValueError, in one sentence, for anything that is not a finite number.
        """
        _check_digits(digits)
        digits = int(digits)
        value = number(measured, "the measured value")
        rows = [Row("your prediction", self.answer, value, self.unit, digits)]
        if law is not None:
            rows.append(Row("the law", number(law, "the law's value"), value, self.unit, digits))
        return Comparison(self.question, tuple(rows))

    def __repr__(self) -> str:
        return f"{self.question}\n{self._state()}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.question)}<br><b>{escape(self._state())}</b></p>"

    def _state(self) -> str:
        if self.answer is None:
            return f"{NO_PREDICTION} yet: write a number{f' of {self.unit}' if self.unit else ''} in place of None"
        state = f"your prediction: {_plain(self.answer)}{f' {self.unit}' if self.unit else ''}"
        if Row("", self.answer, None, self.unit).absurd:
            state += f" ({_FACTOR_ALONE.format(unit=self.unit)})"
        return state


def prediction(question: str, answer: Any = None, unit: str = "") -> Prediction:
    """Keep the learner's number for a question. An empty answer (None or ...) is allowed.

    Raises TypeError for text, truth values and the like, ValueError for NaN and infinity, in one sentence.
    """
    if not isinstance(question, str):
        raise NotANumber(f"prediction: the question comes first and is text, not {_named(question)}.")
    if not isinstance(unit, str):
        raise NotANumber(f"prediction: the unit is text such as 'S' or 'ms', not {_named(unit)}.")
    return Prediction(question, number(None if answer is ... else answer, "a prediction"), unit)


def comparison(
    rows: Mapping[str, tuple[Any, Any]], *, unit: str = "", digits: int = 2, caption: str = ""
) -> Comparison:
    """Several laws at once: `rows` maps a label to (predicted, measured), all in `unit`.

    Raises TypeError or ValueError, in one sentence, for anything else.
    """
    _check_digits(digits)
    for name, text in (("unit", unit), ("caption", caption)):
        if not isinstance(text, str):
            raise NotANumber(f"comparison: the {name} is text, not {_named(text)}.")
    if not isinstance(rows, Mapping):
        raise NotANumber(f"comparison: give {_ROWS}, not {_named(rows)}.")
    for label, pair in rows.items():
        if not isinstance(label, str):
            raise NotANumber(f"comparison: a label is text, not {_named(label)}: give {_ROWS}.")
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            given = f"{len(pair)} values" if isinstance(pair, tuple | list) else _named(pair)
            raise NotANumber(f"comparison: {label!r} has {given} instead of a pair: give {_ROWS}.")
    digits = int(digits)
    return Comparison(
        caption,
        tuple(
            Row(label, number(predicted, f"{label}, predicted"), number(measured, f"{label}, measured"), unit, digits)
            for label, (predicted, measured) in rows.items()
        ),
    )


def number(value: Any, what: str) -> float | None:
    """A finite float, or None for None. Takes ints, floats, NumPy scalars and tensors of one element."""
    if value is None:
        return None
    if hasattr(value, "item") and not isinstance(value, type):
        try:
            value = value.item()
        except (ValueError, RuntimeError):
            raise NotANumber(f"{what} is one number, not {_named(value)} {_filling(value)}.") from None
    if isinstance(value, bool | type) or not hasattr(value, "__float__"):
        raise NotANumber(f"{what} is a number such as 1.5, not {_named(value)}.")
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf
    if not math.isfinite(as_float):
        raise NotUsable(f"{what} is a finite number such as 1.5, not {as_float}.")
    return as_float


def _filling(array: Any) -> str:
    size = array.numel() if callable(getattr(array, "numel", None)) else getattr(array, "size", None)
    return "without elements" if size == 0 else "without values" if size == 1 else "of several elements"


def _check_digits(digits: Any) -> None:
    if isinstance(digits, bool) or not isinstance(digits, Integral) or not 0 <= digits <= 12:
        raise NotUsable(f"digits is a whole number from 0 to 12, not {digits!r}.")


def _named(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {value!r}"
    if isinstance(value, bool):
        return f"the truth value {value}"
    if isinstance(value, type):
        return f"the class `{value.__name__}`"
    return with_article(type(value).__name__)


def _plain(value: float) -> str:
    """The shortest exact writing of a learner's number, thousands separated."""
    return f"{int(value):,}" if value == int(value) and abs(value) < 1e15 else f"{value:,}"


def _shown(value: float, digits: int, unit: str) -> str:
    """`value` with `digits` places, or three significant digits where rounding would hide what it is."""
    rounded = round(value, digits)
    faithful = math.isclose(rounded, value, rel_tol=0.01) or abs(value) >= 1
    text = f"{rounded + 0.0:,.{digits}f}" if faithful else f"{value:.3g}"
    return f"{text} {unit}" if unit else text


def _signed(text: str) -> str:
    if text.startswith("-0 "):
        return text[1:]
    return text if text.startswith(("-", "0 ")) else f"+{text}"
