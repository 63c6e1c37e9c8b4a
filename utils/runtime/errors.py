"""What `launch` raises: one exception per way in which a run of ranks can go wrong.

Each carries a report that names ranks, lines and operations. A notebook shows the report alone: the frames inside the
launcher say nothing about the learner's code.
"""

from __future__ import annotations

from dataclasses import dataclass


class LaunchError(RuntimeError):
    """A run that gave no result. `str(error)` is the whole report."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class CannotSend(LaunchError):
    """The function or an argument cannot travel to the ranks. Nothing was started."""


class RankFailed(LaunchError):
    """A rank raised. `failures` holds every rank's exception, the first one first."""

    def __init__(self, report: str, failures: tuple[Failure, ...] = ()) -> None:
        super().__init__(report)
        self.failures = failures


class RankDied(LaunchError):
    """A rank's process ended without a result: killed by a signal, or it left with an exit code of its own."""

    def __init__(self, report: str, exit_codes: dict[int, int] | None = None) -> None:
        super().__init__(report)
        self.exit_codes = exit_codes or {}


class RanksHang(LaunchError):
    """The deadline passed, or ranks wait for something that can no longer come."""


@dataclass(frozen=True)
class Frame:
    """One line of somebody's code: the file, the line's number, the function, the text of the line."""

    file: str
    line: int
    function: str
    text: str


@dataclass(frozen=True)
class Failure:
    """An exception in a rank, as plain text and frames: the exception object itself stays in the rank."""

    rank: int
    time: float
    kind: str
    message: str
    frames: tuple[Frame, ...]
    inside: Frame | None
    full_text: str
    reasons: tuple[str, ...] = ()  # notes, members of a group, causes: a line each

    @property
    def first_line(self) -> str:
        """The message's first line, without the rest that some of torch's errors carry."""
        return self.message.strip().split("\n")[0][:300]

    @property
    def is_echo(self) -> bool:
        """True for the errors that a rank sees only because another one left."""
        return self.inside is not None and self.kind in _ECHO_KINDS and any(sign in self.message for sign in _ECHOES)


_ECHO_KINDS = ("RuntimeError", "DistBackendError", "DistNetworkError")
_ECHOES = ("Connection closed by peer", "Connection reset by peer", "Read error", "Broken pipe", "Socket closed")
