"""Trace a step of FSDP2 with units of several layers, prefetch set by hand, and units kept after forward.

Started by a test in a fresh interpreter, with a list of cases as JSON; prints for each the most bytes in the forward
and in the backward of each unit, and in the whole step.
"""

import json
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

from utils.runtime.dry_run.child import make_optimizer, step
from utils.runtime.dry_run.model import Decoder
from utils.runtime.dry_run.tracer import Tracer
from utils.theory.architecture import Architecture

TYPES = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32}


def sharded(model, layers, ahead, reshard, recompute, mixed, mesh):
    """The decoder in units of so many layers, gathered so many units ahead in forward and in backward."""
    policy = MixedPrecisionPolicy(**TYPES) if mixed else MixedPrecisionPolicy()
    decoder = Decoder(model, recompute)
    every = list(decoder.layers)
    units = [nn.Sequential(*every[i : i + layers]) for i in range(0, len(every), layers)]
    decoder.layers = nn.ModuleList(units)
    for unit in units:
        fully_shard(unit, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)
    for i, unit in enumerate(units):
        unit.set_modules_to_forward_prefetch(units[i + 1 : i + 1 + ahead])
        unit.set_modules_to_backward_prefetch(units[max(0, i - ahead) : i][::-1] or [unit])
    return fully_shard(decoder, mesh=mesh, mp_policy=policy)


def traced(model, ranks, layers, ahead, reshard, recompute, mixed, sequence, batch):
    """{"forward 0": bytes, …, "all": bytes}."""
    most = {}

    def tell(phase, unit, part, largest, last):
        size = max(largest.total, last.total)
        most["all"] = max(most.get("all", 0), size)
        if unit.startswith("layers.") and part in ("gather", "compute"):
            name = f"{phase} {unit.split('.')[1]}"
            most[name] = max(most.get(name, 0), size)

    mesh = DeviceMesh("cpu", list(range(ranks)))  # not in the fake mode
    with FakeTensorMode():
        decoder = sharded(model, layers, ahead, reshard, recompute, mixed, mesh)
        optimizer, at_rest, _ = make_optimizer(decoder)
        tracer = Tracer(decoder, optimizer, at_rest, tell)
        tokens, labels = (torch.randint(0, model.vocabulary, (batch, sequence)) for _ in range(2))
        tracer.track_inputs((tokens, labels))
        with tracer:
            step(tracer, decoder, optimizer, tokens, labels)
    return most


def main():
    """A case: the architecture's fields, then the arguments of `traced`."""
    warnings.simplefilter("ignore")
    cases = json.loads(sys.argv[1])
    dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    print(json.dumps([traced(Architecture(**model), *case) for model, *case in cases]))


if __name__ == "__main__":
    main()
