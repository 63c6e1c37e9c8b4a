"""What one layer computes and moves for each token: operations of its matrices, bytes of everything else.

Bytes are what each operation reads and writes in HBM, 2 bytes an element, counted operation by operation. "eager": each
of PyTorch's operations is a kernel of its own, and a test counts the bytes of those that PyTorch issues; "fused": one
kernel for a norm with the addition before it, one for an activation, as torch.compile, Apex or Transformer Engine make
them.

A matrix reads its input and writes its output beside its arithmetic: (in + out) elements of 2 bytes a token, twice that
backward, and its weights each micro-batch. Those bytes are *added* to its arithmetic, as kernels start and end with
them; of a square matrix of 4096 that is a twentieth, of 768 a quarter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from utils.theory.architecture import Architecture
from utils.theory.scale.software import EAGER, FUSED, Software

# (forward, backward) bytes for each element.
# RMSNorm, eager: to fp32, square, mean, scale, back to 16 bit, weight; fused: x and the sum before it in, both out.
_RMS = {"eager": (36, 92), "fused": (4, 6)}
_LAYER_NORM = {"eager": (4, 6), "fused": (4, 6)}  # one kernel in PyTorch too
_ADD = {"eager": (6, 6), "fused": (4, 4)}
_GATED = {"eager": (10, 18), "fused": (6, 10)}  # silu and product
_PLAIN = {"eager": (4, 6), "fused": (4, 6)}  # GELU
_ROTARY = {"eager": (20, 20), "fused": (4, 4)}  # through fp32 and back
#: Bytes for each logit, forward and backward: from and to the matrix 2 + 4; eager: the cast to fp32 6, log-softmax 8,
#: gradients of the loss 4, of log-softmax 12, of the cast 6; fused: read 2, read and written backward 4.
LOSS = {"eager": 42, "fused": 12}
#: Of standard attention, for each head, query and key: written, softmax, dropout, read, forward and backward.
SCORES = (13, 19)
#: For each parameter that a GPU updates: weights, gradient and moments read, weights and moments written, in fp32, the
#: gradient's norm read and scaled before. Not fused: Adam's eight operations one after the other, 80 bytes in place of
#: 28 (mosaicml/composer, composer/optim/decoupled_weight_decay.py, without weight decay).
OPTIMIZER = {True: 40, False: 92}


@dataclass(frozen=True)
class Layer:
    """Of one layer. parameters: of its matrices. last: of them, in the last matrix; every_second: in the second, fourth
    and so on in the order in which they run. matrix_bytes: of inputs and outputs of its matrices, each token, forward.
    element_bytes: of all other operations, (forward, backward), each token.
    """

    parameters: int
    last: int
    every_second: int
    matrix_bytes: float
    element_bytes: tuple[float, float]


@lru_cache(maxsize=256)
def layer_operations(model: Architecture, operations: str) -> Layer:
    """Sizes of one layer of `model`, run "eager" or "fused"."""
    matrices = [tensor for tensor in model.layer_tensors if len(tensor.shape) > 1]
    h, queries, keys = model.hidden, model.heads * model.head_dim, model.kv_heads * model.head_dim
    norm = (_RMS if model.norm == "rms" else _LAYER_NORM)[operations]
    act = (_GATED if model.gated_mlp else _PLAIN)[operations]
    rotary = (0, 0) if model.learned_positions else _ROTARY[operations]
    extra = queries + keys if model.qk_norms != "none" else 0
    moved = [
        (model.norms_per_layer * h + extra) * norm[way]
        + 2 * h * _ADD[operations][way]
        + model.ffn * act[way]
        + (queries + keys) * rotary[way]
        for way in (0, 1)
    ]
    return Layer(
        parameters=sum(tensor.parameters for tensor in matrices),
        last=model.hidden * model.ffn,
        every_second=sum(tensor.parameters for tensor in matrices[1::2]),
        matrix_bytes=2.0 * sum(sum(tensor.shape) for tensor in matrices),
        element_bytes=(float(moved[0]), float(moved[1])),
    )


def loss_bytes(software: Software) -> int:
    """For each logit, forward and backward."""
    return LOSS[EAGER if software.operations == EAGER and not software.fused_loss else FUSED]
