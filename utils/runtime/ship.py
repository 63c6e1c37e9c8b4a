"""Sends functions to ranks: cloudpickle, keeping the names of cells and their source lines.

cloudpickle (3.1) gives every function that it sends by value the file name `<dynamic-code>`. A traceback from a rank
would then show no source. Here the name survives, and the lines of files that do not exist on disk (notebook cells)
travel beside the function into the rank's `linecache`.
"""

from __future__ import annotations

import collections
import functools
import io
import linecache
import os
import pickle
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cloudpickle
from cloudpickle.cloudpickle import _DYNAMIC_CLASS_TRACKER_BY_CLASS, _DYNAMIC_CLASS_TRACKER_BY_ID

from utils.runtime.errors import CannotSend

_reduce_code = cloudpickle.Pickler.dispatch_table[types.CodeType]


@dataclass(frozen=True)
class Parcel:
    """Pickled objects, and the source lines of the cells that their functions come from."""

    data: bytes
    sources: dict[str, list[str]]


def _restore_code(make: Callable, arguments: tuple, file: str) -> types.CodeType:
    return make(*arguments).replace(co_filename=file)


def _class_of_the_notebook(tracker: str) -> type:
    return _DYNAMIC_CLASS_TRACKER_BY_ID[tracker]


def _cached_again(function: Callable, parameters: dict[str, Any]) -> Callable:
    return functools.lru_cache(**parameters)(function)


class _Pickler(cloudpickle.Pickler):
    """cloudpickle's, but a code object keeps its file name, and a cached function travels by value.

    `back`: on the way back a class that came from the notebook is named, not sent. cloudpickle would write the rank's
    copy of the class over the notebook's own.
    """

    def __init__(self, buffer: io.BytesIO, back: bool = False) -> None:
        self._back = back
        self.files: set[str] = set()
        own = {types.CodeType: self._reduce_code}
        self.dispatch_table = collections.ChainMap(own, cloudpickle.Pickler.dispatch_table)
        super().__init__(buffer)  # reads the dispatch table, once

    def _reduce_code(self, code: types.CodeType) -> tuple:
        self.files.add(code.co_filename)
        make, arguments = _reduce_code(code)
        return _restore_code, (make, arguments, code.co_filename)

    def reducer_override(self, thing: Any) -> Any:
        if self._back and isinstance(thing, type) and thing in _DYNAMIC_CLASS_TRACKER_BY_CLASS:
            return _class_of_the_notebook, (_DYNAMIC_CLASS_TRACKER_BY_CLASS[thing],)
        if isinstance(thing, functools._lru_cache_wrapper) and thing.__module__ == "__main__":
            return _cached_again, (thing.__wrapped__, thing.cache_parameters())
        return super().reducer_override(thing)


def pack(thing: Any, back: bool = False) -> Parcel:
    """Pickle `thing` with all that its functions need; `back` in a rank. Raises whatever cloudpickle raises."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, back)
    pickler.dump(thing)
    sources = {file: linecache.getlines(file) for file in pickler.files if not os.path.exists(file)}
    return Parcel(buffer.getvalue(), sources)


def unpack(parcel: Parcel) -> Any:
    """The things that `pack` was given, their source lines known to this process's tracebacks."""
    for file, lines in parcel.sources.items():
        linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    return pickle.loads(parcel.data)


def pack_call(fn: Callable, args: tuple) -> Parcel:
    """Pack a call. Raises `CannotSend`, naming what cannot travel, before any rank is started."""
    try:
        return pack((fn, args))
    except Exception as error:
        raise CannotSend(_why_not(fn, args, error)) from None


def _packs(thing: Any) -> bool:
    try:
        pack(thing)
    except Exception:
        return False
    return True


def _why_not(fn: Callable, args: tuple, error: Exception) -> str:
    reason = str(error).split("\n")[0]
    for position, value in enumerate(args):
        if not _packs(value):
            return (
                f"argument {position + 1} of the function, a {type(value).__name__}, cannot be sent to the ranks "
                f"({reason}). Send plain data and tensors; make locks, files and sockets inside the function."
            )
    name = getattr(fn, "__name__", type(fn).__name__)
    for variable, value in _variables(fn).items():
        if not _packs(value):
            return (
                f"{name} uses {variable}, a {type(value).__name__}, which cannot be sent to the ranks ({reason}). "
                f"Make {variable} inside {name} instead."
            )
    return f"{name} cannot be sent to the ranks ({reason}). Define it as a plain function in a cell or a file."


def _variables(fn: Callable) -> dict[str, Any]:
    """What `fn` takes from outside: closure cells, and globals that its code names."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return {}
    closure = zip(code.co_freevars, (cell.cell_contents for cell in fn.__closure__ or ()), strict=False)
    names = {name for name in code.co_names if name in fn.__globals__}
    return {**dict(closure), **{name: fn.__globals__[name] for name in sorted(names)}}
