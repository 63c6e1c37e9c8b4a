"""Ordinary mistakes are refused in one sentence that names the argument, wherever a law takes it."""

import numpy as np
import pytest

from utils.theory import explain, flops, links, nccl, nccl_table, sharing, sweeps, traffic
from utils.theory.allocations import step_counters, unit_buffers
from utils.theory.arguments import check_amount, nearest
from utils.theory.buckets import bucket_bytes, gradient_bytes
from utils.theory.collectives import holdings, messages
from utils.theory.events import Compute, measured_timeline, simulate
from utils.theory.memory import model_states
from utils.theory.models import PRESETS, UnknownModel
from utils.theory.peers import accelerate, deepspeed_zero2, eleuther, job_estimates, megatron, own_estimate
from utils.theory.recipes import Recipe
from utils.theory.units import format_bytes, format_seconds, format_speed

LINK = links.AlphaBeta(1e-6, 1e-9)
HUGE = 10**400
BAD = [
    (lambda: job_estimates("Llama-2-7B", 8, 1), "model is 'Llama-2-7B'; give an Architecture"),
    (lambda: gradient_bytes("GPT-2"), "architecture is 'GPT-2'; give an Architecture"),
    (lambda: sweeps.left_out_errors("x"), "measured is 'x'; give a Sweep"),
    (lambda: unit_buffers([1], 4), r"tensors is \[1\]"),
    (lambda: step_counters(None), "tensors is None"),
    (lambda: nccl_table.nccl_table("all_reduce", 8, None), "points is None"),
    (lambda: nccl_table.nccl_line("all_reduce", 8, 8, 1, dtype=[]), r"dtype is \[\]"),
    (lambda: nccl_table.nccl_line("broadcast", 8, 8, 1, root="abc"), "root is 'abc'"),
    (lambda: accelerate(7e9, dtype=[]), r"dtype is \[\]"),
    (lambda: eleuther(low_bytes="a"), "low_bytes is 'a'"),
    (lambda: eleuther(low_bytes=-2), "low_bytes is -2"),
    (
        lambda: eleuther(num_gpus=2, tensor_parallel=64),
        "tensor_parallel times pipeline_parallel is 64; .* num_gpus = 2",
    ),
    (lambda: eleuther(mixed_precision="yes"), "mixed_precision is 'yes'; it is yes or no"),
    (lambda: megatron(64, 2, 4, 100, 100, query_groups=64), "query_groups is 64; .* divides heads = 4"),
    (lambda: megatron(64, 2, 4, 100, 100, microbatches="abc"), "microbatches is 'abc'"),
    (lambda: deepspeed_zero2(7e9, cpu_offload=object()), "cpu_offload is .*yes or no"),
    (lambda: explain.estimate("x", 7, None), "parts is None"),
    (lambda: simulate(None), "tasks is None"),
    (lambda: simulate([Compute("a", 1)], 5), "links is 5"),
    (lambda: measured_timeline(None), "operations are None"),
    (lambda: LINK.seconds(-1), "message_bytes is -1"),
    (lambda: LINK.seconds(True), "message_bytes is True"),
    (lambda: LINK.seconds(HUGE), "message_bytes is a number too large"),
    (lambda: format_seconds(False), "seconds is False"),
    (lambda: bucket_bytes([[-1]], [5, 6]), r"buckets is \[\[-1\]\]"),
    (lambda: bucket_bytes([[0], [0]], [5, 6]), "each once"),
    (lambda: model_states(HUGE, 8, "ddp"), "parameters is a number too large"),
    (lambda: model_states(1e308, 8, "ddp"), r"parameters is 1e\+308; .* at most 1e\+30"),
    (lambda: traffic.collective_bytes("all_reduce", 1, HUGE), "world_size is .* at most 1,000,000"),
    (lambda: traffic.collective_bytes(np.array([1, 2]), 1, 8), r"kind is array\(\[1, 2\]\)"),
    (lambda: traffic.bus_bandwidth("all_reduce", 1, 8, 5e-324), "seconds is 5e-324; .* at least 1e-30"),
    (lambda: traffic.traffic_by_rank("all_reduce", 1, 10**12), "world_size is 1000000000000"),
    (lambda: messages("all_to_all", 10**12), "world_size is 1000000000000; .* at most 1,000"),
    (lambda: holdings("all_reduce", 10**12), "world_size is 1000000000000"),
    (lambda: nccl.nccl_latency(np.array([1, 2]), 8), "kind is array"),
    (lambda: flops.utilization(1e15, 1, HUGE, 1e12), "gpus is a number too large"),
    (lambda: sharing.tcp_goodput(1e9, 10**400), "mtu is a number too large"),
    (lambda: links.crossover_bytes(10**308, LINK), "world_size is"),
    (lambda: traffic.step_bytes(7e9, "ddp", 8, bytes_per_element=1e300), r"bytes_per_element is 1e\+300"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_it_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value) and len(str(error.value)) < 420


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("meta-llama/Llama-2-7b-hf", "Llama-2-7B"),
        ("mistralai/Mistral-7B-v0.1", "Mistral-7B-v0.1"),
        ("llama2 7b", "Llama"),
    ],
)
def test_names_from_elsewhere_lead_to_the_nearest(name, suggested):
    with pytest.raises(UnknownModel, match=suggested):
        PRESETS[name]


def test_capital_letters_and_spaces_do_not_hide_a_name():
    assert nearest("DDP", ("ddp", "zero1")) == ["ddp"] and nearest("nvlink4", tuple(links.LINKS)) == ["NVLink 4"]
    with pytest.raises(ValueError, match="did you mean 'fp32'"):
        model_states(1, 1, "ddp", recipe="FP32")


def test_amounts_near_the_bounds():
    check_amount("x", 1e30, "a size", "such as 1")
    check_amount("x", 0, "a size", "such as 1", least=0)
    check_amount("x", np.float32(2), "a size", "such as 1")
    for bad in (1.1e30, 1e-31, 0):
        with pytest.raises(ValueError, match="x is "):
            check_amount("x", bad, "a size", "such as 1")


def test_numpy_ranks_do_not_overflow():
    assert messages("all_reduce", np.int8(100)) == messages("all_reduce", 100)


def test_a_copy_of_fp32_gradients_is_a_term_of_its_own():
    own = own_estimate(7e9, 8, "zero2", Recipe("x", 2, 8, 4, 8, 2, "here", gradient_copy=4))
    assert abs(own["rounding"]) < 8 and own["miscellaneous"] == 4 * 7e9 / 8 == own["fp32 gradients"]
    assert eleuther(gradient_bytes=8)["16-bit gradients"] == 0


def test_what_is_shown_is_short():
    states = model_states(7e9, 64, "zero2")
    assert "26.250 GB" not in repr(PRESETS) and "58" not in repr(PRESETS)[:9] and "Llama-1-7B" in repr(PRESETS)
    assert str(states).splitlines()[-1].split() == ["in", "all", f"{states.total / 1e9:.3f}", "GB"]
    assert "in all" in states._repr_html_() and "<table>" in accelerate(7e9)._repr_html_()
    assert repr(accelerate(7e9)) == "Estimate(accelerate, float32: 112 GB)"
    assert (format_speed(4e13), format_seconds(1e5)) == ("40 Tbit/s", "100,000 s")
    with pytest.raises(ValueError, match="binary is 'no'"):
        format_bytes(5, binary="no")
