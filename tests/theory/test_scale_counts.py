"""Bytes that the step-time model counts operation by operation are those of the operations that PyTorch issues."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils.theory.models import PRESETS
from utils.theory.scale import SOFTWARE, Job, machine, predict
from utils.theory.scale import operations as counts
from utils.theory.scale.collectives import context_collectives, pipeline_sends, tensor_times
from utils.theory.scale.communication import ACROSS, INSIDE

TOKENS, WIDTH = 1024, 512
SIZE = TOKENS * WIDTH
FREE = {"view", "t", "transpose", "_unsafe_view", "detach", "expand", "unsqueeze", "alias", "reshape", "view_as_real"}
FREE |= {"view_as_complex", "empty_like", "_conj"}


class Bytes(TorchDispatchMode):
    """Counts what each operation reads and writes; expanded dimensions once, views nothing."""

    def __init__(self):
        super().__init__()
        self.moved = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        made = operation(*args, **(kwargs or {}))
        name = operation.overloadpacket.__name__
        if name not in FREE:
            read = {each.data_ptr(): size(each) for each in tensors((args, kwargs))}
            if name.startswith("nll_loss"):  # one number of each row, and zeros written around it
                read = {}
            written = tensors(args[0]) if name.startswith("_foreach") and name.endswith("_") else tensors(made)
            self.moved += sum(read.values()) + sum(size(each) for each in written)
        return made


def tensors(tree):
    return [each for each in tree_leaves(tree) if isinstance(each, torch.Tensor)]


def size(tensor):
    numbers = 1
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        numbers *= length if stride else 1
    return numbers * tensor.element_size()


def both_ways(function, *inputs):
    """Bytes for each element, forward and backward."""
    with Bytes() as forward:
        made = function(*inputs)
    gradient = torch.ones_like(made)
    with Bytes() as backward:
        torch.autograd.grad(made, [each for each in inputs if each.requires_grad], gradient)
    return pytest.approx((forward.moved / SIZE, backward.moved / SIZE), rel=0.04)


def numbers(*shape):
    return torch.randn(*shape or (TOKENS, WIDTH), dtype=torch.bfloat16, requires_grad=True)


def rms_norm(x, weight):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * weight


def rotary(x):
    """Of heads of 64, as Llama has it; of many heads, so that the angles that they share weigh nothing."""
    turns = torch.polar(torch.ones(len(x), 1, 32), torch.ones(len(x), 1, 32))
    pairs = torch.view_as_complex(x.float().reshape(len(x), -1, 32, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


def test_bytes_of_eager_operations():
    weight = torch.ones(WIDTH, dtype=torch.bfloat16, requires_grad=True)
    functional = torch.nn.functional
    assert counts._RMS["eager"] == both_ways(rms_norm, numbers(), weight)
    assert counts._LAYER_NORM["eager"] == both_ways(
        lambda x, w: functional.layer_norm(x, (WIDTH,), w, w), numbers(), weight
    )
    assert counts._GATED["eager"] == both_ways(lambda x, y: functional.silu(x) * y, numbers(), numbers())
    assert counts._PLAIN["eager"] == both_ways(functional.gelu, numbers())
    assert counts._ADD["eager"][0] == both_ways(lambda x, y: x + y, numbers(), numbers()).expected[0]
    assert counts._ROTARY["eager"] == both_ways(rotary, numbers(16, SIZE // 16 // 64, 64))


def test_bytes_of_the_loss():
    logits, labels = numbers(), torch.randint(0, WIDTH, (TOKENS,))
    forward, backward = both_ways(
        lambda x: torch.nn.functional.cross_entropy(x.float(), labels), logits
    ).expected  # without the matrix: 2 written, twice 2 read backward
    assert counts.LOSS["eager"] == pytest.approx(2 + forward + backward + 4, rel=0.01)


def test_bytes_of_adam():
    """Composer's DecoupledAdamW, one operation after the other; fused, each state is read and written once."""
    weights, gradient, first, second = (torch.rand(SIZE) for _ in range(4))
    with Bytes() as counted:
        torch.linalg.vector_norm(gradient)
        gradient.mul_(0.5)
        first.mul_(0.9).add_(gradient, alpha=0.1)
        second.mul_(0.95).addcmul_(gradient, gradient, value=0.05)
        apart = (second.sqrt() / 0.5).add_(1e-8)
        weights.addcdiv_(first, apart, value=-1e-3)
    assert counted.moved / SIZE == pytest.approx(counts.OPTIMIZER[False], rel=0.01)
    norm_and_scaling = 4 + 8
    assert counts.OPTIMIZER[True] == norm_and_scaling + 4 * 4 + 3 * 4


@pytest.mark.parametrize(
    ("again", "software", "times"),
    [
        ("none", "NeMo", 4),
        ("attention", "Megatron 2022", 4),  # between two matrices: no collective
        ("full", "Megatron 2021", 6),  # two more, forward once again
        ("half", "Megatron 2021", 5),
        ("full", "FSDP, async TP", 5.5),  # stops before the last matrix, and so before its reduce-scatter
        ("operations", "FSDP, async TP", 5),  # reduce-scatters are kept, gathers are not
    ],
)
def test_tensor_parallel_collectives_that_run_again(again, software, times):
    job = Job(PRESETS["Llama-3.1-8B"], 64, 8192, tensor=8, again=again, software=software)
    assert tensor_times(job) == times


def test_keys_and_values_pass_once_more_where_attention_runs_again():
    h100 = machine("H100 80GB")
    once, again = (
        context_collectives(Job(PRESETS["Llama-3.1-8B"], 64, 8192, context=4, again=name), h100).seconds
        for name in ("none", "full")
    )
    assert again / once == pytest.approx(4 / 3)


def test_what_stages_send():
    """Each piece of a stage: tokens x hidden numbers of 2 bytes on, and as many gradients back; over t GPUs."""
    model = PRESETS["Llama-3-70B"]
    job = Job(model, 64, 4096, 1, 16, "zero1", tensor=4, pipeline=8, software="NeMo")
    slow = machine("H100 80GB", 400)
    sent = 2 * 2 * 4096 * model.hidden / 4
    found = pipeline_sends(job, slow)
    assert found.level == ACROSS and found.seconds == pytest.approx(sent / (slow.network_rate / 8))
    inside = pipeline_sends(Job(model, 8, 4096, 1, 16, "zero1", pipeline=8, software="NeMo"), slow)
    assert inside.level == INSIDE and inside.seconds == pytest.approx(4 * sent / slow.inside_rate)
    assert pipeline_sends(Job(model, 64, 4096, tensor=8), slow).seconds == 0
    two_on_a_node = Job(model, 64, 4096, 1, 16, "zero1", tensor=4, pipeline=16, software="NeMo")
    assert pipeline_sends(two_on_a_node, slow).seconds == pytest.approx(found.seconds / 2)  # 4 of its 8 GPUs cross
    waiting = {
        (software, pieces): predict(
            Job(model, 64, 4096, 1, 16, "ddp", tensor=4, pipeline=8, interleaved=pieces, software=software), slow
        )
        for software in ("NeMo", "Megatron 2021")
        for pieces in (1, 5)
    }
    assert waiting["NeMo", 1].parts["waiting across"] - waiting["NeMo", 5].parts["waiting across"] == pytest.approx(
        16 * found.seconds
    )  # interleaved, they hide
    more = waiting["Megatron 2021", 5].parts["waiting across"] - waiting["Megatron 2021", 1].parts["waiting across"]
    assert more == pytest.approx(4 * 16 * found.seconds)
    assert all(SOFTWARE[name].overlaps_pipeline for name in ("NeMo", "Llama 3"))


def test_the_largest_stage_sets_the_pace():
    """80 layers on 32 stages: two or three each, so that 32 stages are no faster than 27 would be."""
    model, place = PRESETS["Llama-3-70B"], machine("H100 80GB")
    assert Job(model, 32, 4096, pipeline=32).stage_layers == 3
    uneven, even = (
        predict(Job(model, stages, 4096, 1, 64, "ddp", pipeline=stages, software="NeMo"), place) for stages in (32, 40)
    )
    assert uneven.parts["matrices"] == pytest.approx(1.5 * even.parts["matrices"])


@pytest.mark.parametrize("share", [1.6, 60, 1e6])
def test_a_share_of_the_peak_is_no_percentage(share):
    job, place = Job(PRESETS["Llama-3.1-8B"], 8, 8192), machine("H100 80GB")
    for given in ((share, None), (0.6, share)):
        with pytest.raises(ValueError, match=r"it is the share of the peak that matrices reach: give at most 1\.5"):
            predict(job, place, *given)
