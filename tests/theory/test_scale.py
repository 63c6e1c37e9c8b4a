"""What the step-time model at scale must keep to, whatever is published."""

import math
from dataclasses import replace

import pytest

from utils.theory.architecture import Architecture
from utils.theory.flops import PEAK_FLOPS, flops_per_token, mfu, transformer_flops
from utils.theory.models import PRESETS
from utils.theory.nccl import nccl_latency
from utils.theory.scale import GPUS, SOFTWARE, Job, Machine, machine, predict
from utils.theory.scale.collectives import data_collectives
from utils.theory.scale.communication import ACROSS, INSIDE, group_cost
from utils.theory.scale.compute import compute_seconds
from utils.theory.scale.efficiency import efficiency
from utils.theory.scale.hardware import LINK_SHARE, named_gpu
from utils.theory.scale.operations import layer_operations
from utils.theory.scale.software import named_software
from utils.theory.scale.step import CONTENTION, SLOWEST, flops
from utils.theory.traffic import collective_bytes
from utils.theory.units import GB

LLAMA = PRESETS["Llama-3.1-8B"]
H100 = machine("H100 80GB", 3200)
JOB = Job(LLAMA, 64, 8192, 1, 2, strategy="fsdp", again="full")


@pytest.mark.parametrize("strategy", ["ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"])
def test_parts_add_up_to_the_step(strategy):
    found = predict(replace(JOB, strategy=strategy, shard_size=8 if strategy == "hsdp" else None), H100)
    assert math.fsum(found.parts.values()) == pytest.approx(found.seconds)
    assert min(found.parts.values()) >= 0
    assert found.per_gpu * found.gpus == pytest.approx(JOB.tokens / found.seconds)
    assert repr(found).startswith("a step of ") and "matrices" in repr(found) and "on each of 64 GPUs" in repr(found)


def test_mfu_and_hfu_are_the_suites_own():
    found = predict(JOB, H100)
    each = flops_per_token(LLAMA.parameters, 32, 4096, 8192)
    assert found.mfu == pytest.approx(mfu(each, found.tokens_per_second, 64, PEAK_FLOPS["H100"]))
    assert 1.2 < found.hfu / found.mfu < 4 / 3  # the head does not run again
    gpt = PRESETS["GPT-3-175B"]
    for again, name in (("none", "none"), ("full", "full")):
        ours = flops(Job(gpt, 8, 2048, again=again, strategy="ddp"))[1]
        assert ours == pytest.approx(transformer_flops(96, 12288, 50257, 2048, 8, name), rel=0.005)


def test_one_gpu_waits_for_nobody():
    found = predict(replace(JOB, gpus=1), H100)
    assert found.exposed == 0 and found.parts["contention"] == 0 and found.parts["slowest GPU"] == 0
    took = compute_seconds(replace(JOB, gpus=1), H100, efficiency(H100.gpu, "bf16"), efficiency(H100.gpu, "bf16"))
    layer = took.forward.total + took.backward.total + took.again.total
    assert found.seconds == pytest.approx(2 * (32 * layer + took.head) + took.optimizer)


def test_collectives_are_the_rings_bytes_over_the_links_share():
    size, rate = 10 * GB, LINK_SHARE * 450 * GB
    for kind in ("all_reduce", "all_gather", "reduce_scatter"):
        inside = group_cost(kind, size, 8, 1, H100)
        assert inside.level == INSIDE
        assert inside.seconds == pytest.approx(collective_bytes(kind, size, 8) / rate, rel=0.01)
        across = group_cost(kind, size, 64, 1, machine("H100 80GB", 400))
        assert across.level == ACROSS
        assert across.seconds == pytest.approx(collective_bytes(kind, size, 64) / (LINK_SHARE * 50 * GB), rel=0.05)
    alone = group_cost("all_reduce", size, 8, 8, H100)  # one rank on each node: an eighth of its cards
    assert alone.level == ACROSS
    assert alone.seconds == pytest.approx(collective_bytes("all_reduce", size, 8) / (LINK_SHARE * 50 * GB), rel=0.05)
    assert group_cost("all_reduce", size, 1, 1, H100).seconds == 0


def test_bytes_by_strategy_and_accumulation():
    """Volumes of `traffic.step`: 2 P for ddp; zero2 reduces in each micro-batch; fsdp gathers twice in each."""

    def gathered(strategy, kind, shard=None):
        job = replace(JOB, strategy=strategy, shard_size=shard, accumulation=4)
        return sum(each.times for each in data_collectives(job, H100) if each.kind == kind)

    assert gathered("ddp", "all_reduce") == 1
    assert (gathered("zero1", "reduce_scatter"), gathered("zero1", "all_gather")) == (1, 1)
    assert (gathered("zero2", "reduce_scatter"), gathered("zero2", "all_gather")) == (4, 1)
    assert (gathered("fsdp", "reduce_scatter"), gathered("fsdp", "all_gather")) == (4, 8)
    assert gathered("hsdp", "all_reduce", 8) == 4 and gathered("fsdp", "all_reduce") == 0


def test_what_should_make_it_slower_does():
    base = predict(JOB, H100)
    slower = {
        "network": predict(JOB, machine("H100 80GB", 100)),
        "eager": predict(replace(JOB, software="FSDP, eager"), H100),
        "fewer tokens": predict(replace(JOB, sequence=1024), H100),
        "more GPUs": predict(replace(JOB, gpus=1024), H100),
        "memory": predict(JOB, Machine(replace(H100.gpu, memory_rate=1e12), 8, 400 * GB)),
    }
    for why, found in slower.items():
        assert found.mfu < base.mfu, why
    assert predict(replace(JOB, again="none"), H100).per_gpu > base.per_gpu
    assert predict(replace(JOB, precision="fp8"), H100).per_gpu > base.per_gpu
    assert predict(JOB, machine("H100 80GB", 100)).binds == "across" and base.binds == "compute"


def test_a_slow_network_is_waited_for_no_longer_than_it_takes():
    slow = machine("H100 80GB", 50)
    found = predict(JOB, slow)
    assert found.parts["waiting across"] <= found.communication[ACROSS]
    assert found.parts["contention"] <= CONTENTION * found.communication[ACROSS]


def test_hsdp_beats_fsdp_where_the_network_is_slow_and_micro_batches_many():
    slow = machine("H100 80GB", 200)
    fsdp, hsdp = (
        predict(replace(JOB, strategy=s, shard_size=g, accumulation=4, software="FSDP2, bf16"), slow)
        for s, g in (("fsdp", None), ("hsdp", 8))
    )
    assert hsdp.parts["waiting across"] < fsdp.parts["waiting across"] and hsdp.seconds < fsdp.seconds


def test_pipelines_idle_and_pieces_help():
    job = Job(PRESETS["GPT-3-175B"], 128, 2048, 1, 8, "ddp", tensor=8, pipeline=8, software="Megatron 2022")
    a100 = machine("A100 80GB", 1600)
    bubble = {v: predict(replace(job, interleaved=v), a100).parts["pipeline bubble"] for v in (1, 2, 4)}
    assert bubble[1] == pytest.approx(2 * bubble[2]) == pytest.approx(4 * bubble[4])
    one = predict(replace(job, accumulation=64), a100)
    assert one.parts["pipeline bubble"] / one.seconds < 7 / 64


def test_each_doubling_of_nodes_costs_the_slowest():
    for gpus, doublings in ((8, 0), (64, 3), (128, 4), (1024, 7)):
        found = predict(replace(JOB, gpus=gpus), H100)
        others = found.seconds - found.parts["slowest GPU"]
        assert found.seconds / others == pytest.approx(1 + doublings * SLOWEST)


def test_every_collective_has_its_latency():
    """The same bytes in 33 pieces take 32 latencies more; fsdp gathers a root and 32 layers, ddp reduces buckets."""
    for kind in ("all_gather", "reduce_scatter"):
        one, cut = (group_cost(kind, 16 * GB, 1024, 1, H100, pieces).seconds for pieces in (1, 33))
        assert cut - one == pytest.approx(32 * nccl_latency(kind, 1024, 128))
    model = LLAMA
    gathers = data_collectives(Job(model, 1024, 8192), H100)[0].cost.seconds
    assert gathers == pytest.approx(group_cost("all_gather", 2 * model.parameters, 1024, 1, H100, 33).seconds)
    at_once = replace(named_software("FSDP2, bf16"), bucket=None)
    buckets = 2 * model.parameters / (25 * 2**20)
    whole, cut = (
        data_collectives(Job(model, 1024, 8192, strategy="ddp", software=software), H100)[0].cost.seconds
        for software in (at_once, "FSDP2, bf16")
    )
    tree = nccl_latency("all_reduce", 1024, 128, algorithm="tree")
    assert cut - whole == pytest.approx((buckets - 1) * tree)


def test_deepspeed_gathers_every_tensor_by_itself():
    """deepspeedai/DeepSpeed, issue 1174 and pull request 1188: 64 layers of 2560 on 8 A100. The forward pass takes 480
    ms under ZeRO-3 and 60 under ZeRO-2, so its gathers 420; none of this went into the model (issue 1069 did)."""
    bert = Architecture(
        2560, 64, 40, vocabulary=32003, gated_mlp=False, biases="all", norm="layer", learned_positions=512,
        layout="opt", tied_embeddings=True,
    )  # fmt: skip
    assert bert.parameters == pytest.approx(5.1e9, rel=0.01)
    gathered = data_collectives(Job(bert, 8, 512, software="DeepSpeed 2021"), machine("A100 40GB", 400))[0]
    assert gathered.phase == "alone" and gathered.cost.seconds == pytest.approx(0.420, rel=0.12)
    full = data_collectives(Job(bert, 8, 512, again="full", software="DeepSpeed 2021"), machine("A100 40GB", 400))
    assert [each.kind for each in full].count("all_gather") == 3


def test_selective_op_repeats_every_second_matrix():
    """Of query, key, value, output, gate, up and down: key, output and up."""
    model = LLAMA
    second = 4096 * 1024 + 4096 * 4096 + 4096 * 14336
    assert layer_operations(model, "fused").every_second == second
    none, selective = (
        compute_seconds(replace(JOB, model=model, again=again), H100, 0.6, 0.6) for again in ("none", "operations")
    )
    assert none.again.matrices == 0 and selective.again.attention == 0
    assert selective.again.matrices == pytest.approx(
        none.forward.matrices * second / layer_operations(model, "fused").parameters
    )


def test_every_gpu_and_software_predicts():
    for gpu in GPUS.values():
        for software in SOFTWARE:
            found = predict(replace(JOB, gpus=16, software=software), Machine(gpu, 8, 50 * GB))
            assert 0 < found.mfu < 0.9, (gpu.name, software)
    with pytest.raises(ValueError, match="gpu is 'A100 80GB', for which no published run in fp8 is known here"):
        predict(replace(JOB, precision="fp8"), machine("A100 80GB"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"gpus": 12, "tensor": 8}, "gpus is 12, which tensor x pipeline x context = 8 does not divide"),
        ({"strategy": "dpp"}, "strategy is 'dpp', which is not known here; did you mean 'ddp'"),
        ({"strategy": "hsdp"}, "shard_size is None"),
        ({"shard_size": 8}, "shard_size is 8, but fsdp has no shard groups"),
        ({"again": "some"}, "again is 'some'"),
        ({"micro_batch": 0}, "micro_batch is 0"),
        ({"pipeline": 64}, "pipeline is 64, but the model has 32 layers"),
        ({"software": "Megatron"}, "software is 'Megatron'"),
    ],
)
def test_bad_input_is_one_sentence(wrong, said):
    with pytest.raises(ValueError) as caught:
        replace(JOB, **wrong)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_gpus_are_found_by_name():
    assert named_gpu("H200").name == "H200 141GB" and named_gpu("b200").memory == 180 * GB
    for name in ("A100", "", "T4", 7):
        with pytest.raises(ValueError, match="gpu is"):
            named_gpu(name)
    with pytest.raises(ValueError, match="gpus_per_node is 0"):
        machine("H200", gpus_per_node=0)
