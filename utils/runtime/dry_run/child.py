"""The process of a dry run: builds the model on fake tensors, traces one step, and prints what it found as JSON lines.

Started by `start.dry_run` as `python -m utils.runtime.dry_run.child`, with the request as JSON on its standard input.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import astuple
from typing import Any, TextIO

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore

from utils.runtime.dry_run.model import Decoder
from utils.runtime.dry_run.tracer import Tracer
from utils.theory.architecture import Architecture
from utils.theory.moments import Moment

#: Where each stage begins and ends on the progress bar: shares of the time that Llama-2-70B takes.
STAGES = {"sharding": (0.1, 0.36), "forward": (0.5, 0.71), "backward": (0.71, 0.93), "optimizer step": (0.93, 1.0)}
_EVERY = 0.1  # seconds between two reports

Report = Callable[[str, float], None]


def main() -> None:
    """Read the request, print a line {"done": …, "doing": …} now and then, and one {"result": …} or {"error": …}."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not come between the lines
    warnings.simplefilter("ignore")
    request = json.loads(sys.stdin.readline())
    where = {"doing": "starting"}
    try:
        _say(answers, {"result": trace(request, _reporter(answers, where))})
    except Exception as error:
        traceback.print_exc()
        text = f"{type(error).__name__}: {str(error).strip()[:400]}"
        _say(answers, {"error": text, "doing": where["doing"]})


def trace(request: dict[str, Any], report: Report) -> dict[str, Any]:
    """One step of rank 0, which holds most: events, collectives, bytes of step counters, and this process's memory.

    request: fields of `result.Request`, the model as a dictionary.
    """
    model = Architecture(**request["model"])
    shape = (request["batch"], request["sequence"])
    report("sharding", 0)
    mesh = make_mesh(request["world_size"], request["shard_size"], request["strategy"])  # not in the fake mode
    events: list[tuple[str, str, str, tuple, tuple]] = []
    with FakeTensorMode():
        decoder = make_sharded(model, mesh, request["recompute"], request["mixed_precision"], report)
        optimizer, at_rest, counters = make_optimizer(decoder)
        tracer = Tracer(decoder, optimizer, at_rest, _collector(events, model.layers, report))
        tokens, labels = (torch.randint(0, model.vocabulary, shape) for _ in range(2))
        tracer.track_inputs((tokens, labels))
        with tracer:
            step(tracer, decoder, optimizer, tokens, labels)
    calls = [(kind, size, _group(kind, request), n) for (kind, size), n in tracer.collectives.items()]
    return {"events": events, "calls": calls, "step_counters": counters, "resident": _resident()}


def make_mesh(world_size: int, shard_size: int, strategy: str) -> DeviceMesh:
    """The fake process group, whose collectives return at once and move nothing, and a mesh of its ranks."""
    dist.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())
    ranks = torch.arange(world_size)
    if strategy == "fsdp":
        return DeviceMesh("cpu", ranks)
    return DeviceMesh("cpu", ranks.view(-1, shard_size), mesh_dim_names=("replicate", "shard"))


def make_sharded(
    model: Architecture, mesh: DeviceMesh, recompute: bool, mixed_precision: bool, report: Report
) -> Decoder:
    """The decoder, each layer and the rest wrapped by `fully_shard`; fp32 shards, gathered in bf16 or as they are."""
    policy = MixedPrecisionPolicy()
    if mixed_precision:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    decoder = Decoder(model, recompute)
    for done, layer in enumerate(decoder.layers):
        report("sharding", done / model.layers)
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(decoder, mesh=mesh, mp_policy=policy)
    return decoder


def make_optimizer(decoder: Decoder) -> tuple[torch.optim.Optimizer, int, int]:
    """AdamW with its state made, as in a second step; the bytes of that state, and of the step counters in it.

    foreach=False: with it the tracker books operations that DTensor tries on whole tensors as the optimizer's.
    """
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=1e-3, foreach=False)
    for parameter in decoder.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    sizes = [(name, _storage(value)) for state in optimizer.state.values() for name, value in state.items()]
    return optimizer, sum(size for _, size in sizes), sum(size for name, size in sizes if name == "step")


def step(
    tracer: Tracer,
    decoder: Decoder,
    optimizer: torch.optim.Optimizer,
    tokens: torch.Tensor,
    labels: torch.Tensor,
) -> None:
    """Forward, cross entropy on fp32 logits, backward, optimizer; the parts that FSDP's hooks do not see are named."""
    logits = decoder(tokens).float()
    tracer.begin("loss", "", "forward")
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    del logits
    tracer.begin("loss", "", "backward")  # until the root's hook
    loss.backward()
    tracer.begin("optimizer step", "", "update")
    optimizer.step()
    tracer.begin("optimizer step", "", "free")
    optimizer.zero_grad()
    tracer.begin("", "", "")


def _collector(events: list, layers: int, report: Report) -> Callable[[str, str, str, Moment, Moment], None]:
    """Appends a part of the step unless nothing changed in it; reports how far its phase is."""
    before: list[tuple] = [()]

    def tell(phase: str, unit: str, part: str, largest: Moment, last: Moment) -> None:
        sizes = tuple(astuple(moment)[1:] for moment in (largest, last))
        if sizes != (before[0], before[0]):
            events.append((phase, unit, part, *sizes))
        before[0] = sizes[1]
        if unit.startswith("layers."):
            place = int(unit.rpartition(".")[2])
            report(phase, (place if phase == "forward" else layers - 1 - place) / layers)
        elif phase == "optimizer step":
            report(phase, 0)

    return tell


def _reporter(answers: TextIO, where: dict[str, str]) -> Report:
    spoken = [0.0]

    def report(stage: str, share: float) -> None:
        where["doing"] = stage
        if stage in STAGES and time.monotonic() - spoken[0] >= _EVERY:
            begin, end = STAGES[stage]
            spoken[0] = time.monotonic()
            _say(answers, {"done": begin + (end - begin) * share, "doing": stage})

    return report


def _say(answers: TextIO, what: dict[str, Any]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


def _storage(tensor: torch.Tensor) -> int:
    local = tensor._local_tensor if isinstance(tensor, DTensor) else tensor
    return local.untyped_storage().nbytes()


def _group(kind: str, request: dict[str, Any]) -> int:
    """Ranks in the group of such a collective."""
    return request["world_size"] // request["shard_size"] if kind == "all_reduce" else request["shard_size"]


def _resident() -> int | None:
    """The most bytes that this process had in memory; None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
