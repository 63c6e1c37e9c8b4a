"""Imports all that a rank needs, once, in the fork server (or in an idle spawned process) instead of in every rank.

`torch._dynamo` and `torch.distributed.nn.functional` are what the first `DistributedDataParallel` and the first FSDP
call import lazily: 1 to 2.5 s in every rank otherwise. None of these may start a thread: a rank forked from a process
with threads can hang.
"""

import atexit

import cloudpickle  # noqa: F401
import torch
import torch._dynamo
import torch.distributed
import torch.distributed.checkpoint
import torch.distributed.device_mesh
import torch.distributed.fsdp
import torch.distributed.nn.functional
import torch.distributed.optim
import torch.distributed.tensor
import torch.nn.parallel  # noqa: F401

from utils.runtime.leaving import leave_at_once

# The fork server ends when the notebook's kernel does, and its ranks with it: at once, not after seconds.
atexit.register(leave_at_once)
