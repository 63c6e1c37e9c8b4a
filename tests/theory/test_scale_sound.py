"""What the step-time model at scale keeps to for any job on any machine, and what it makes of input that is none."""

import math
import random
import warnings
from dataclasses import fields, replace

import numpy
import pytest

from utils.theory.models import PRESETS
from utils.theory.scale import AGAIN, GPUS, SOFTWARE, Job, Machine, changes, machine, predict, score, summary
from utils.theory.scale import collectives as of_scale
from utils.theory.scale.collectives import data_collectives
from utils.theory.scale.communication import INSIDE, Cost, group_cost
from utils.theory.traffic import collective_bytes, step_bytes
from utils.theory.units import GB

LLAMA = PRESETS["Llama-3.1-8B"]
H100 = machine("H100 80GB", 3200)
JOB = Job(LLAMA, 64, 8192, 2, 2)


def any_job(draw):
    """A job and a machine by chance; most are nobody's."""
    while True:
        strategy = draw.choice(("ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"))
        tensor, pipeline, context = (draw.choice((1, 1, 1, 2, 4, 8)) for _ in range(3))
        ranks = draw.choice((1, 2, 3, 4, 6, 8, 16, 64, 256, 2048))
        groups = [size for size in range(1, ranks + 1) if ranks % size == 0]
        try:
            job = Job(
                PRESETS[draw.choice(list(PRESETS))], ranks * tensor * pipeline * context,
                draw.choice((1, 7, 128, 2048, 8192, 131072)), draw.choice((1, 2, 3, 8)), draw.choice((1, 1, 2, 4, 16)),
                strategy, draw.choice(groups) if strategy == "hsdp" else None, tensor, pipeline, context,
                draw.choice((1, 1, 2)), draw.choice(AGAIN), draw.choice(("bf16", "fp8")),
                draw.choice(list(SOFTWARE)),
            )  # fmt: skip
        except ValueError:
            continue  # heads, layers, positions
        gpu = GPUS[draw.choice(("H100 80GB", "H100 96GB", "H200 141GB", "B200 180GB"))]
        network, inside = draw.choice((1e6, 1e9, 5e10, 4e11, 1e12)), draw.choice((1e9, 1e10, 9e11))
        return job, Machine(gpu, draw.choice((1, 2, 3, 4, 6, 8, 8, 16, 72)), network, inside)


def test_any_job_on_any_machine():
    draw = random.Random(9)
    for _ in range(1500):
        job, place = any_job(draw)
        found = predict(job, place)
        numbers = [found.seconds, found.per_gpu, found.mfu, found.hfu, *found.parts.values()]
        assert all(math.isfinite(number) and number >= 0 for number in numbers) and found.seconds > 0, job
        assert math.fsum(found.parts.values()) == pytest.approx(found.seconds), job
        for level in ("inside", "across"):  # nothing is waited for longer than it takes
            assert found.parts[f"waiting {level}"] <= found.communication[level] * (1 + 1e-9), (job, place)
        for link in ("network", "inside"):
            faster = replace(place, **{link: getattr(place, link) * draw.choice((1.01, 2, 1000))})
            assert predict(job, faster).seconds <= found.seconds * (1 + 1e-9), (job, place, link)


def test_hsdp_lies_between_ddp_and_fsdp():
    """In one group it is fsdp; in groups of one, with gradients exchanged once a step, ddp with a layer a bucket."""
    draw, met = random.Random(10), {"fsdp": 0, "ddp": 0}
    while min(met.values()) < 60:
        job, place = any_job(draw)
        if job.strategy in met and job.context == 1:
            software = replace(job.software, replicas_once=True)
            pieces = (
                job.model.layers / job.pipeline + 1
                if software.each_tensor is None
                else len(job.model.tensors) / job.pipeline
            )
            held = job.model.parameters / (job.tensor * job.pipeline)
            job = replace(job, software=replace(software, bucket=software.reduced_bytes * held / pieces))
            size = job.ranks if job.strategy == "fsdp" else 1
            hybrid = predict(replace(job, strategy="hsdp", shard_size=size), place)
            assert hybrid.parts["waiting across"] == pytest.approx(predict(job, place).parts["waiting across"])
            assert hybrid.seconds == pytest.approx(predict(job, place).seconds), job
            met[job.strategy] += 1


def test_bytes_are_those_of_the_traffic_laws(monkeypatch):
    def its_bytes(kind, size, ranks, stride, machine, pieces):
        return Cost(collective_bytes(kind, size, ranks) if ranks > 1 else 0.0, INSIDE)

    monkeypatch.setattr(of_scale, "group_cost", its_bytes)
    for strategy, size in (("ddp", None), ("zero1", None), ("zero2", None), ("fsdp", None), ("hsdp", 8), ("hsdp", 1)):
        for m in (1, 4):
            for name in ("FSDP2, bf16", "Llama 3", "NeMo"):
                job = Job(LLAMA, 64, 2048, 1, m, strategy, size, software=name)
                law = step_bytes(
                    LLAMA.parameters, strategy, 64, size, 8, micro_batches=m,
                    gradient_bytes_per_element=job.software.reduced_bytes,
                    all_reduce_every_micro_batch=not job.software.replicas_once if strategy == "hsdp" else None,
                )  # fmt: skip
                ours = sum(each.times * each.cost.seconds for each in data_collectives(job, H100))
                assert ours == pytest.approx(law.per_rank), (strategy, size, m, name)


def test_groups_that_cut_nodes_unevenly():
    """12 neighbours on nodes of 8: the cut leaves 4 on a node, so half of its cards carry the ring."""
    cut = group_cost("all_reduce", 10 * GB, 12, 1, H100).seconds
    whole = group_cost("all_reduce", 10 * GB, 16, 1, H100).seconds
    alone = group_cost("all_reduce", 10 * GB, 12, 8, H100).seconds
    assert 1.9 < cut / whole < 2.1 and 3.9 < alone / cut < 4.1


JUNK = [None, [], (8,), {}, "", "8", "bf16", b"x", math.nan, math.inf, -math.inf, -1, 0, 0.0, True, False, 1.5, 3,
        10**6, 10**18, 10**30, 10**400, 1e-40, 1e300, object(), 1 + 2j, numpy.int8(8), numpy.int16(64),
        numpy.int32(2**15), numpy.float16(3.5), numpy.float32(3.5), numpy.nan, numpy.array([8]), numpy.array(8),
        "x" * 999, "\n"]  # fmt: skip


def answered_or_refused(act):
    """Whether it was refused, which has to be one sentence; no warning either."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = act()
        except ValueError as error:
            said = str(error)
            assert "\n" not in said and len(said) < 500, said
            assert any(what in said for what in ("give ", "choose ", "leave ", "did you mean ")), said
            return True
        numbers = (found.seconds, found.per_gpu, found.mfu, *found.parts.values())
        assert all(math.isfinite(number) and number >= 0 for number in numbers) and repr(found)
    return False


def test_whatever_is_given_is_predicted_or_refused_in_one_sentence():
    acts = []
    for value in JUNK:
        acts += [lambda given={field.name: value}: predict(replace(JOB, **given), H100) for field in fields(Job)]
        for name in ("gpu", "network", "gpus_per_node", "inside"):
            acts.append(lambda given={"gpu": "H200", name: value}: predict(JOB, Machine(**given)))
        for name in ("gigabits", "gpus_per_node"):
            acts.append(lambda given={name: value}: predict(JOB, machine("H200", **given)))
        for i in range(4):
            acts.append(lambda given=(JOB, H100, None, None), i=i, v=value: predict(*given[:i], v, *given[i + 1 :]))
    refused = sum(answered_or_refused(act) for act in acts)
    assert refused > 600


@pytest.mark.parametrize("rows", [3, math.nan, "rows", [8], numpy.array(8)])
def test_rows_are_rows(rows):
    for read in (score, summary, changes, lambda given: score(None, given)):
        with pytest.raises(ValueError, match="give a list of"):
            read(rows)


def test_whole_numbers_of_numpy_are_pythons():
    plain = Job(LLAMA, 64, 8192, 2, 2, "hsdp", 8)
    small = Job(LLAMA, numpy.int8(64), numpy.int16(8192), numpy.int8(2), numpy.uint8(2), "hsdp", numpy.int8(8))
    assert small == plain and small.tokens == plain.tokens and type(small.gpus) is int
    assert predict(small, H100).seconds == predict(plain, H100).seconds


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tensor": 64}, "tensor is 64; each GPU takes as many heads: give a whole number of at least 1 that divides"),
        ({"context": 64, "sequence": 96}, "context is 64; each GPU takes an equal part of a sequence"),
        ({"interleaved": 20, "pipeline": 4}, "interleaved is 20, but 4 stages of 32 layers have not so many pieces"),
        ({"model": PRESETS["GPT-2"]}, "sequence is 8192, but the model has learned 1,024 positions: give no more"),
        (
            {"micro_batch": 10**10},
            "micro_batch is 10000000000; it is a size of the job: give a whole number of at most",
        ),
    ],
)
def test_jobs_that_cannot_be(wrong, said):
    with pytest.raises(ValueError) as caught:
        replace(JOB, **wrong)
    assert said in str(caught.value)
