"""Stops a receive that gloo would answer with a broken connection, or with numbers of another type, where it stands.

Both ends of a message must mean the same type, and gloo knows only bytes. In a ring a rank sends what its neighbours
send: so a receive into another type than this rank has sent so far is a mistake. A receive that names no sender is one
as well: gloo may then hand it a message that was meant for the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class _Receives(TorchDispatchMode):
    """Looks at the type of each message before it is issued."""

    def __init__(self) -> None:
        super().__init__()
        self._sent: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is torch.ops.c10d.send.default:
            self._sent.add(args[0][0].dtype)
        elif func is torch.ops.c10d.recv_any_source_.default:
            raise ValueError(
                "a receive names no sender: say from which rank, `dist.recv(tensor, src)`; without `src` it may take "
                "what was meant for another receive"
            )
        elif func is torch.ops.c10d.recv_.default and self._sent and args[0][0].dtype not in self._sent:
            into, sent = (str(each).removeprefix("torch.") for each in (args[0][0].dtype, next(iter(self._sent))))
            raise TypeError(
                f"what is sent is {sent}, and the tensor that receives is {into}: make it with `torch.empty_like`, "
                "which takes the type as well"
            )
        return func(*args, **(kwargs or {}))


@contextmanager
def receives_checked() -> Iterator[None]:
    """In a rank: look at every receive before it is issued."""
    with _Receives():
        yield
