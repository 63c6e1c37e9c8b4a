"""Looks at an answer before anything of it is run: is there one, is it a stub, can it be called as the check will?"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from utils.checks.exercise import Exercise
from utils.checks.verdict import Mistake, NotBegun, with_article

_JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs])
_GLOBAL_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
_CLOSURE_LOADS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")


def inspect_answer(exercise: Exercise, answer: Any) -> None:
    """Return if the answer can be run. Raises NotBegun for an empty one or a stub, Mistake for one of a wrong kind."""
    if answer is None or answer is ...:
        raise NotBegun(f"no answer yet: write `{exercise.name}`, then run this cell again.")
    if exercise.wants == "text":
        if not isinstance(answer, str):
            raise Mistake(f"the answer is the program's text, not {_kind(answer)}.")
        return
    if not callable(answer) or inspect.isclass(answer):
        raise Mistake(f"the answer is the function `{exercise.name}` itself, not {_kind(answer)}.")
    function = plain_function(answer)
    if function is None:
        return
    stub = find_stub(function)
    if stub == function.__name__:
        raise NotBegun(f"write the body of `{stub}` in place of its `raise NotImplementedError`.")
    if stub is not None:
        raise NotBegun(f"`{function.__name__}` calls `{stub}`, which is not written yet.")
    if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise Mistake("the function has a `yield`, an `async` or an `await`, so that calling it runs none of its body.")
    _check_parameters(exercise, answer)


def plain_function(answer: Any) -> FunctionType | None:
    """The function a callable stands for: through decorators, partials, bound methods and `__call__`."""
    while not isinstance(answer, FunctionType):
        if isinstance(answer, functools.partial):
            answer = answer.func
        elif hasattr(answer, "__func__"):
            answer = answer.__func__
        elif hasattr(answer, "__wrapped__"):  # such as what `functools.cache` makes
            answer = answer.__wrapped__
        elif isinstance(getattr(type(answer), "__call__", None), FunctionType):  # noqa: B004 (its own, not `type`'s)
            answer = type(answer).__call__
        else:
            return None
    return inspect.unwrap(answer)


def find_stub(function: FunctionType) -> str | None:
    """The name of the first stub among `function` and the learner's functions that it loads; None if there is none.

    A stub is a function that certainly raises NotImplementedError, whatever its arguments. Functions count as the
    learner's if they live in the same notebook as `function`, that is, in the same global names.
    """
    return next((each.__name__ for each in with_helpers(function) if is_stub(each.__code__)), None)


def with_helpers(function: FunctionType) -> Iterator[FunctionType]:
    """`function`, then each of the learner's functions that it loads, directly or through another."""
    waiting, seen = [function], set()
    while waiting:
        current = waiting.pop(0)
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting += _loaded(current)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def is_stub(code: CodeType) -> bool:
    """True if `raise NotImplementedError` is reached before any branch, loop or return."""
    named = False
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("RETURN_VALUE", "RETURN_CONST") or instruction.opcode in _JUMPS:
            return False
        named = named or "NotImplementedError" in str(instruction.argrepr)
        if instruction.opname == "RAISE_VARARGS":
            return named
    return False


def _loaded(function: FunctionType) -> Iterator[FunctionType]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closed_over = {name: cell.cell_contents for name, cell in cells if _filled(cell)}
    for name, is_global in _names(function.__code__):
        value = (function.__globals__ if is_global else closed_over).get(name)
        target = inspect.unwrap(value) if callable(value) else None
        if isinstance(target, FunctionType) and target.__globals__ is function.__globals__:
            yield target


def _filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _names(code: CodeType) -> Iterator[tuple[str, bool]]:
    """Each name that the code reads from outside itself, and whether it is a global one. Attributes are none."""
    for each in _nested(code):
        for instruction in dis.get_instructions(each):
            if instruction.opname in (*_GLOBAL_LOADS, *_CLOSURE_LOADS):
                yield instruction.argval, instruction.opname in _GLOBAL_LOADS


def _check_parameters(exercise: Exercise, answer: Any) -> None:
    try:
        signature = inspect.signature(answer)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*exercise.parameters)
    except TypeError:
        called = f"{exercise.name}({', '.join(exercise.parameters)})"
        raise Mistake(
            f"the check calls `{called}`, and yours takes `{_names_only(signature)}`: keep the stub's first line."
        ) from None


def _names_only(signature: inspect.Signature) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return f"({', '.join(stars.get(p.kind, '') + p.name for p in signature.parameters.values())})"


def _kind(answer: Any) -> str:
    if isinstance(answer, bool):
        return f"the truth value {answer}"
    if isinstance(answer, int | float):
        return f"the number {answer}"
    if isinstance(answer, str):
        return "a string"
    if inspect.isclass(answer):
        return f"the class `{answer.__name__}`"
    return with_article(type(answer).__name__)
