"""Runs an answer on fresh ranks so that a storage without memory, or one in use, gets a sentence and not a crash.

Who reads a view of an emptied storage, or resizes a storage into which a gather still writes, goes on by chance, and
often the process ends. So there an error is raised before anything happens, and the learner's line is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from utils.checks.lab05.hooks import returns_guarded
from utils.checks.ranks import Mark, Seen, run_cases
from utils.checks.verdict import Mistake
from utils.checks.waiting import reads_or_writes
from utils.runtime.places import is_learner_file
from utils.runtime.storages import storage_bytes
from utils.runtime.works import WORKS

DEADLINE = 90.0  # seconds, for a busy machine: correct answers need two; who waits in vain is found at once
_BY_TORCH = "out of bounds for storage of size 0"  # torch's own word, where a view of an emptied storage is made
REMEDIES = {
    "SIGSEGV": (
        " So ends who reads or writes a view after its storage was emptied: keep a copy of the slice (`mine.clone()`), "
        "and gather before use."
    ),
    _BY_TORCH: (
        " A view of an emptied storage is used there: who computes with a unit's weights, or slices its buffer, does "
        "so while it is gathered, in backward too, and where the unit is frozen."
    ),
    "modified by an inplace operation": (
        " The forward's copy is changed in place: autograd has saved the weights for backward, and counts every write "
        "to the parameters. Gather into `flat`, of which each `p.data` is a view: such a write is not counted."
    ),
}


class StillWritten(RuntimeError):
    """A storage is resized while an operation that nobody has waited for writes into it."""


class Emptied(RuntimeError):
    """A tensor is read or written whose storage has no memory any more."""


def run(
    answer: Any, cases: Mapping[str, Callable[..., Any]], ranks: int, deadline: float | None = None
) -> dict[str, list[Seen]]:
    """As `run_cases`, with a true reduce-scatter. Raises Mistake, with what to do where that is known."""
    try:
        guarded = {name: partial(_guarded, case) for name, case in cases.items()}
        return run_cases(answer, guarded, ranks, deadline, true_reduce_scatter=True)
    except Mistake as mistake:
        more = next((remedy for sign, remedy in REMEDIES.items() if sign in str(mistake)), "")
        raise Mistake(f"{mistake}{more}") from None


def is_empty(error: BaseException) -> bool:
    """Whether it says that weights are used whose storage is empty."""
    return isinstance(error, Emptied) or (isinstance(error, RuntimeError) and _BY_TORCH in str(error))


def learners(error: BaseException) -> str:
    """The innermost of the answer's functions that the error came through; "" if a module or autograd raised it."""
    name, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        name = code.co_name if is_learner_file(code.co_filename) else name
        trace = trace.tb_next
    return name


def _guarded(case: Callable[[Any, Mark], Any], answer: Any, mark: Mark) -> Any:
    with resizes_guarded(), returns_guarded(), _MemoryNeeded():
        return case(answer, mark)


# These give a tensor another storage, or its storage another size.
_GIVES_MEMORY = ("set_", "resize_")


class _MemoryNeeded(TorchDispatchMode):
    """Raises Emptied before an operation reads or writes a tensor that has no memory."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs, name = kwargs or {}, func._schema.name.partition("::")[2]
        if reads_or_writes(func) and name not in _GIVES_MEMORY:
            for given in args:
                for each in given if isinstance(given, list | tuple) else (given,):
                    if isinstance(each, torch.Tensor) and each.numel() and not storage_bytes(each.untyped_storage()):
                        raise Emptied(
                            f"`{name}` uses a tensor of {tuple(each.shape)} whose storage was emptied: gather before "
                            "use, and keep a copy of the slice (`mine.clone()`)"
                        )
        return func(*args, **kwargs)


@contextmanager
def resizes_guarded() -> Iterator[None]:
    """Inside, resizing a storage raises StillWritten if a collective writes into it that nobody has waited for."""
    resize = torch.UntypedStorage.resize_

    def resize_(storage: torch.UntypedStorage, size: int) -> torch.UntypedStorage:
        begin = storage.data_ptr()
        for op, spans in list(WORKS.in_use.items()):
            if any(first < begin + storage.nbytes() and begin < past for first, past in spans):
                raise StillWritten(
                    f"the storage is written to by {op.kind}, which nobody has waited for: call `.wait()` of what it "
                    "returned before the storage is resized"
                )
        return resize(storage, size)

    with patch.object(torch.UntypedStorage, "resize_", resize_):
        yield
