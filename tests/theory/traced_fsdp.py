"""Trace FSDP2 steps with PyTorch's own memory tracker: fake tensors and a fake process group, no memory and no ranks.

Started by a test in a fresh interpreter, with a list of cases as JSON; prints for each the bytes at the peak, by kind.
"""

import json
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint


def norm(width, gated):
    """As in Llama where the MLP is gated, as in GPT elsewhere."""
    return nn.RMSNorm(width) if gated else nn.LayerNorm(width, bias=False)


class Block(nn.Module):
    def __init__(self, hidden, heads, kv_heads, head_dim, ffn, gated, recompute):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim, self.recompute = heads, kv_heads, head_dim, recompute
        self.norm_1, self.norm_2 = norm(hidden, gated), norm(hidden, gated)
        self.query = nn.Linear(hidden, heads * head_dim, bias=False)
        self.key = nn.Linear(hidden, kv_heads * head_dim, bias=False)
        self.value = nn.Linear(hidden, kv_heads * head_dim, bias=False)
        self.output = nn.Linear(heads * head_dim, hidden, bias=False)
        self.gate = nn.Linear(hidden, ffn, bias=False) if gated else None
        self.up = nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def attention(self, x):
        batch, sequence, _ = x.shape
        query, key, value = (
            linear(x).view(batch, sequence, heads, self.head_dim).transpose(1, 2)
            for linear, heads in ((self.query, self.heads), (self.key, self.kv_heads), (self.value, self.kv_heads))
        )
        mixed = F.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=self.heads != self.kv_heads
        )
        return self.output(mixed.transpose(1, 2).reshape(batch, sequence, -1))

    def compute(self, x):
        x = x + self.attention(self.norm_1(x))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y) if self.gate else F.gelu(self.up(y)))

    def forward(self, x):
        return checkpoint(self.compute, x, use_reentrant=False) if self.recompute else self.compute(x)


class Decoder(nn.Module):
    def __init__(self, hidden, layers, heads, kv_heads, head_dim, ffn, vocabulary, gated, recompute, tied):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        sizes = (hidden, heads, kv_heads, head_dim, ffn, gated, recompute)
        self.blocks = nn.ModuleList(Block(*sizes) for _ in range(layers))
        self.norm, self.head = norm(hidden, gated), nn.Linear(hidden, vocabulary, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def peak(mesh, sizes, sequence, micro_batch, gated, recompute, tied=False):
    """Bytes at the peak of the second step, by kind."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    with FakeTensorMode():
        model = Decoder(*sizes, gated, recompute, tied)
        for block in model.blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
        tracker = FSDPMemTracker(model, optimizer)
        tokens = torch.randint(0, sizes[-1], (micro_batch, sequence))
        with tracker:
            for step in range(2):
                logits = model(tokens).float()
                loss = F.cross_entropy(logits.view(-1, sizes[-1]), tokens.view(-1))
                del logits
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                if step == 0:  # the optimizer's state is made in the first step
                    tracker.reset_mod_stats()
                    # This leaves the peak so far. In the first step DTensor tries its operations on whole tensors.
                    tracker._peak_mem.clear()
                    tracker._peak_mem_snap.clear()
        (snapshot,) = tracker.get_tracker_snapshot("peak").values()
    return {str(kind).rpartition(".")[2]: size for kind, size in snapshot.items()}


def main():
    """A case: the ranks, then the arguments of `peak`. The process group is the largest's, a mesh the first of it."""
    cases = json.loads(sys.argv[1])
    dist.init_process_group("fake", rank=0, world_size=max(ranks for ranks, *_ in cases), store=FakeStore())
    print(json.dumps([peak(DeviceMesh("cpu", list(range(ranks))), *case) for ranks, *case in cases]))


if __name__ == "__main__":
    main()
