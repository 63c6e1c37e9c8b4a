"""Where a rank is: which frames are the learner's, and how a line of code is named."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterable
from functools import cache
from types import FrameType

import torch

from utils.runtime.errors import Frame

_SUITE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# These stand around or in place of methods of torch and raise nothing of their own.
_PASSING_ON = tuple(os.path.join(_SUITE, "runtime", name) for name in ("works.py", "stand_in.py"))
_FOREIGN = tuple(
    os.path.abspath(folder) + os.sep
    for folder in (
        os.path.dirname(torch.__file__),
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
        sysconfig.get_path("stdlib"),
    )
)


@cache
def is_learner_file(file: str) -> bool:
    """True for code that is neither torch's, nor Python's, nor another package's, nor this suite's."""
    if file.startswith(("<frozen", "<string>", "<__array_function__", "<eval_with_key")):
        return False
    return not os.path.abspath(file).startswith((*_FOREIGN, _SUITE)) or _is_cell(file)


def _is_cell(file: str) -> bool:
    """A notebook cell's file name ends in .py but no such file need exist."""
    return file in linecache.cache and not os.path.exists(file)


def learner_frame(frame: FrameType | None) -> Frame | None:
    """The innermost frame at or above `frame` that belongs to the learner's code."""
    while frame is not None:
        code = frame.f_code
        if is_learner_file(code.co_filename):
            text = linecache.getline(code.co_filename, frame.f_lineno).strip()
            return Frame(code.co_filename, frame.f_lineno, code.co_name, text)
        frame = frame.f_back
    return None


def split_frames(stack: Iterable[traceback.FrameSummary]) -> tuple[tuple[Frame, ...], Frame | None]:
    """The learner's frames, outermost first, and the innermost frame of all if that is another library's."""
    stack = [s for s in stack if s.filename not in _PASSING_ON]
    frames = [Frame(s.filename, s.lineno or 0, s.name, (s.line or "").strip()) for s in stack]
    own = tuple(f for f in frames if is_learner_file(f.file))
    if not frames or frames[-1] in own or frames[-1].file.startswith(_SUITE):
        return own, None
    return own, frames[-1]


def file_label(file: str) -> str:
    """How a person names the file: `Cell In[5]` for a notebook's cell, else the name without its folders."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        named = shell.compile.format_code_name(file)
        if named is not None:
            return " ".join(named)
    return file if _is_cell(file) else os.path.basename(file)


def line_label(frame: Frame) -> str:
    """`line 7 of train (Cell In[5]): dist.all_reduce(g)`."""
    text = f": {frame.text}" if frame.text else ""
    return f"line {frame.line} of {frame.function} ({file_label(frame.file)}){text}"


def text_of(error: BaseException) -> str:
    """`str(error)`, also for an exception whose own text cannot be made."""
    try:
        return str(error)
    except Exception as second:
        return f"(its text cannot be made: {type(second).__name__})"


def reasons_of(error: BaseException) -> tuple[str, ...]:
    """What led to an exception, a line each: its notes, the members of a group, the exceptions that it came from."""
    lines = [str(note) for note in getattr(error, "__notes__", ())]
    lines += [_one_line(member) for member in getattr(error, "exceptions", ()) if isinstance(member, BaseException)]
    seen = {id(error)}
    while len(lines) < 10:
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is None or id(cause) in seen:
            break
        lines.append(f"caused by {_one_line(cause)}" if error.__cause__ else f"while handling {_one_line(cause)}")
        seen.add(id(cause))
        error = cause
    return tuple(line[:300] for line in lines)


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {text_of(error).strip().splitlines()[0] if text_of(error).strip() else ''}"
