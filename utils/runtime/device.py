"""Which backend a run uses, and where a rank's tensors live."""

from __future__ import annotations

import torch
import torch.distributed as dist

BACKENDS = ("auto", "gloo", "nccl")


def device() -> torch.device:
    """Where this rank's tensors live: its own GPU in an NCCL run, else the CPU."""
    if dist.is_available() and dist.is_initialized() and dist.get_backend() == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def choose_backend(backend: str, world_size: int) -> str:
    """`auto` is NCCL when there is a GPU for every rank, else gloo. Raises ValueError with the remedy."""
    if backend not in BACKENDS:
        raise ValueError(
            f"backend is {backend!r}; it can be {', '.join(map(repr, BACKENDS))}. Leave it out for 'auto'."
        )
    gpus = torch.cuda.device_count()
    if backend == "auto":
        return "nccl" if gpus >= world_size and dist.is_nccl_available() else "gloo"
    if backend == "nccl" and gpus < world_size:
        raise ValueError(
            f"backend 'nccl' needs one GPU for each of the {world_size} ranks, and this machine has {gpus}: "
            f"use backend='gloo', or at most {gpus} ranks."
            if gpus
            else f"backend 'nccl' needs one GPU for each of the {world_size} ranks, and this machine has none: "
            "use backend='gloo'."
        )
    return backend
