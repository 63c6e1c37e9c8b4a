"""A training step of a cluster of up to 1024 ranks, traced in one process: `dry_run("Llama-2-70B", 64)`."""

from utils.runtime.dry_run.result import Call, DryRun, Event, Request
from utils.runtime.dry_run.start import DryRunFailed, dry_run

__all__ = ["Call", "DryRun", "DryRunFailed", "Event", "Request", "dry_run"]
