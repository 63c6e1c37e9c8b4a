"""Why two estimates of the same job's memory disagree: term by term, in bytes on one GPU.

An `Estimate` is a list of named terms that add up to its total exactly, since all are whole bytes. `explain(a, b)` sets
two of them side by side; the differences of the terms add up to the difference of the totals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from utils.theory.arguments import check_amount, check_choice, check_text
from utils.theory.units import GB, format_bytes, plain, shown

ROUNDING = "rounding"
#: Every name that a term may have, in the order in which they are listed.
TERMS: tuple[str, ...] = (
    "weights",
    "16-bit gradients",
    "fp32 gradients",
    "master weights",
    "optimizer",
    "largest layer",
    "live parameters",
    "buckets",
    "activations",
    "logits",
    "miscellaneous",
    ROUNDING,
)


@dataclass(frozen=True)
class Term:
    """One thing that an estimate counts.

    size: whole bytes on one GPU. per_parameter: bytes per parameter, None if it does not go by parameters.
    shared_by: among how many ranks it is shared out. note: what it stands for, where the name leaves that open.
    """

    name: str
    size: int
    per_parameter: float | None = None
    shared_by: int = 1
    note: str = ""


@dataclass(frozen=True)
class Estimate:
    """What one calculator says about one GPU.

    who: the calculator and its setting. parameters: as it counts them. terms: bytes that add up to `total`.
    printed: what it prints, by heading, digit for digit. unit: the unit it prints and what it means by it, in bytes.
    cpu: bytes of one node's main memory, where it estimates them. quirks: what is odd or wrong about it, reproduced.
    """

    who: str
    parameters: float
    terms: tuple[Term, ...]
    printed: Mapping[str, str] = field(default_factory=dict, hash=False)
    unit: tuple[str, int] = ("GB", GB)
    cpu: int | None = None
    quirks: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Bytes on one GPU: the sum of the terms."""
        return sum(term.size for term in self.terms)

    def __getitem__(self, name: str) -> int:
        """Bytes of a term, 0 if it is not counted."""
        check_choice("term", name, TERMS)
        return sum(term.size for term in self.terms if term.name == name)

    def __str__(self) -> str:
        lines = [f"{self.who}: {_gb(self.total)} on each GPU, for {self.parameters:,.0f} parameters"]
        lines += [f"  {term.name:24}{_gb(term.size):>14}" for term in self.terms]
        lines += [f"  prints {heading}: {text}" for heading, text in self.printed.items()]
        return "\n".join(lines + [f"  note: {quirk}" for quirk in self.quirks])

    def __repr__(self) -> str:
        return f"Estimate({self.who}: {_gb(self.total)})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row">{escape(term.name)}</th><td>{_gb(term.size)}</td></tr>' for term in self.terms
        )
        printed = "".join(f"<li>prints {escape(h)}: {escape(text)}</li>" for h, text in self.printed.items())
        return (
            f"<table><caption>{escape(self.who)}: {_gb(self.total)} on each GPU, for {self.parameters:,.0f} parameters"
            f"</caption>{rows}</table><ul>{printed}{''.join(f'<li>{escape(quirk)}</li>' for quirk in self.quirks)}</ul>"
        )


def estimate(
    who: str, parameters: float, parts: Iterable[tuple[Any, ...]], total: float | None = None, **rest: Any
) -> Estimate:
    """An `Estimate` of terms in whole bytes, rounded; what that leaves of the total is a term of its own.

    parts: (name, bytes) or the first fields of a `Term`, bytes not yet whole; parts of 0 bytes are left out.
    total: what the calculator itself arrives at, if it rounds; else the sum of the parts, rounded.
    """
    check_text("who", who, "the name of a calculator")
    check_amount("parameters", parameters, "a number of parameters", "such as 7.5e9")
    if total is not None:
        check_amount("total", total, "a number of bytes", "such as 80 * GB", least=0)
    try:
        exact = [Term(*part) for part in parts]
    except TypeError:
        raise ValueError(f"parts is {shown(parts)}; give tuples that begin with a name in TERMS and bytes") from None
    for term in exact:
        check_choice("the name of a part", term.name, TERMS)
        check_amount(f"the bytes of {term.name!r}", term.size, "a part of the memory", "such as 14e9", least=0)
    whole = [Term(t.name, round(t.size), t.per_parameter, t.shared_by, t.note) for t in exact if round(t.size)]
    left = round(sum(t.size for t in exact) if total is None else total) - sum(t.size for t in whole)
    if left:
        whole.append(Term(ROUNDING, left))
    whole.sort(key=lambda term: TERMS.index(term.name))
    return Estimate(who, plain(parameters), tuple(whole), **rest)


@dataclass(frozen=True)
class Difference:
    """One term in two estimates, in bytes, and why they differ there; "" where they do not."""

    name: str
    a: int
    b: int
    why: str

    @property
    def size(self) -> int:
        """Bytes that `a` has more than `b`."""
        return self.a - self.b


@dataclass(frozen=True)
class Explanation:
    """Two estimates of one job, side by side. Prints and draws itself."""

    a: Estimate
    b: Estimate
    terms: tuple[Difference, ...]
    units: str

    @property
    def difference(self) -> int:
        """Bytes that `a` has more than `b`: the sum over the terms."""
        return self.a.total - self.b.total

    def __str__(self) -> str:
        rows = [("", "a", "b", "a - b", "")]
        rows += [(t.name, _gb(t.a), _gb(t.b), _signed(t.size), t.why) for t in self.terms]
        rows += [("all", _gb(self.a.total), _gb(self.b.total), _signed(self.difference), "")]
        table = [f"{name:24}{a:>11}{b:>11}{size:>11}   {why}".rstrip() for name, a, b, size, why in rows]
        return "\n".join([f"a: {self.a.who}", f"b: {self.b.who}", *table, self.units])

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from utils.views.peers import explanation_picture  # only when it is shown

        return explanation_picture(self)._repr_mimebundle_(include, exclude)


def explain(a: Estimate, b: Estimate) -> Explanation:
    """Set two estimates side by side, term by term; the differences of the terms add up to that of the totals.

    Raises ValueError if one of them is no `Estimate`.
    """
    for name, given in (("a", a), ("b", b)):
        if not isinstance(given, Estimate):
            raise ValueError(f"{name} is {shown(given)}; give an Estimate, as the functions of utils.theory.peers do")
    names = [name for name in TERMS if a[name] or b[name]]
    terms = tuple(Difference(name, a[name], b[name], _why(name, a, b)) for name in names)
    return Explanation(a, b, terms, _about_units(a, b))


def _why(name: str, a: Estimate, b: Estimate) -> str:
    if a[name] == b[name]:
        return ""
    if name == ROUNDING:
        return "one of them cuts off what is less than a byte"
    in_a, in_b = (next((t for t in each.terms if t.name == name), None) for each in (a, b))
    if in_a is None or in_b is None:
        found, (who_a, who_b) = in_a or in_b, _called(a, b)
        return f"only {who_a if in_a else who_b} counts {found.note or 'it'}{_cost(found)}"
    reasons = []
    if in_a.per_parameter != in_b.per_parameter and None not in (in_a.per_parameter, in_b.per_parameter):
        reasons.append(f"{in_a.per_parameter:g} B per parameter against {in_b.per_parameter:g}")
    if in_a.shared_by != in_b.shared_by:
        reasons.append(f"{_among(in_a.shared_by)} against {_among(in_b.shared_by)}")
    if in_a.per_parameter is not None and round(a.parameters) != round(b.parameters):
        reasons.append(f"{a.parameters:,.0f} parameters against {b.parameters:,.0f}")
    if not reasons and (in_a.note or in_b.note):
        reasons.append(f"{in_a.note or 'as it is'} against {in_b.note or 'as it is'}")
    return "; ".join(reasons) or "counted by another rule"


def _called(a: Estimate, b: Estimate) -> tuple[str, str]:
    """Their names without the setting; "a" and "b" where these would be the same."""
    short_a, short_b = (each.who.split(",")[0] for each in (a, b))
    return ("a", "b") if short_a == short_b else (short_a, short_b)


def _cost(term: Term) -> str:
    if term.per_parameter is None:
        return ""
    return f": {term.per_parameter:g} B per parameter, {_among(term.shared_by)}"


def _among(ranks: int) -> str:
    return "whole on each GPU" if ranks == 1 else f"shared among {ranks}"


def _about_units(a: Estimate, b: Estimate) -> str:
    (called_a, bytes_a), (called_b, bytes_b) = a.unit, b.unit
    if a.unit == b.unit:
        return f"units: both mean {bytes_a:,} bytes by {called_a}: no difference"
    return (
        f"units: a writes {called_a} for {bytes_a:,} bytes, b {called_b} for {bytes_b:,}: "
        f"the printed numbers are {a.total / bytes_a:,.2f} and {b.total / bytes_b:,.2f}"
    )


def _gb(size: float) -> str:
    return format_bytes(size, binary=False) if abs(size) < 10**15 else f"{size / GB:,.0f} GB"


def _signed(size: int) -> str:
    return f"+{_gb(size)}" if size > 0 else _gb(size)
