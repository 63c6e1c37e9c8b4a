"""The planner: memory verdicts are training_memory's, the four rules come out by themselves, bad input is named."""

import json
from itertools import product

import pytest

from utils.theory.breakdown import training_memory
from utils.theory.models import PRESETS
from utils.theory.planner import hybrid_job, hybrid_jobs, placements, plan
from utils.theory.planner.held import RECIPES, held, most_tokens
from utils.theory.planner.plan import CLOSE, group_sizes, largest_divisor
from utils.theory.units import GB

GRID = list(
    product(
        ("GPT-2", "Llama-3.2-1B", "Gemma-2-2B", "Llama-3-8B", "Qwen2.5-32B", "Llama-3-70B"),
        (1, 8, 64, 256),
        (512, 1024),
        (1, 6, 16),
    )
)


def its_memory(row):
    """As anybody would ask for it."""
    ask = row.ask
    return training_memory(
        ask.model, ask.gpus, row.strategy, ask.sequence, row.micro_batch, row.again, row.shard_size,
        RECIPES[row.strategy],
    )  # fmt: skip


def test_verdicts_are_those_of_theory_memory_over_a_grid():
    checked = 0
    for i, (name, gpus, sequence, each) in enumerate(GRID):
        memory = (24, 40, 80, 141)[i % 4] * GB
        found = plan(name, gpus, memory=memory, sequence=sequence, global_batch=gpus * each)
        for row in found.rows[i % 3 :: 3]:
            law = its_memory(row)
            assert row.memory == pytest.approx(law.total, rel=1e-9), (name, gpus, row.title)
            assert row.fits == law.fits(memory, 0.1), (name, gpus, row.title)
            assert row.binds == "memory" if not row.fits else row.binds != "memory"
            checked += 1
    assert checked > 500


def test_micro_batches_are_the_largest_that_fit_and_divide():
    for name, gpus, again in product(("Llama-3-8B", "GPT-2"), (8, 64), ("none", "full")):
        found = plan(name, gpus, sequence=1024, global_batch=24 * gpus)
        for strategy in ("zero1", "fsdp"):
            row = found.row(strategy, again)
            assert row.micro_batch * row.accumulation == 24
            larger = [size for size in (1, 2, 3, 4, 6, 8, 12, 24) if size > row.micro_batch]
            if row.fits and larger:
                more = training_memory(row.ask.model, gpus, strategy, 1024, larger[0], again, recipe=RECIPES[strategy])
                assert not more.fits(80 * GB, 0.1)
    assert [largest_divisor(24, most) for most in (0, 1, 5, 7, 11, 23, 24, 100)] == [1, 1, 4, 6, 8, 12, 24, 24]


def test_hsdp_holds_what_fsdp_does_in_one_group():
    model = PRESETS["Llama-3-8B"]
    for size in (2, 8, 16):
        law = training_memory(model, 64, "hsdp", 2048, 1, "none", size, RECIPES["hsdp"])
        assert held(model, "hsdp", size, "none", 2048) == pytest.approx(law.total, rel=1e-9)
    tokens = most_tokens(model, "fsdp", 64, "none", 72 * GB)
    assert held(model, "fsdp", 64, "none", tokens) <= 72 * GB < held(model, "fsdp", 64, "none", tokens + 1)


# --- the four rules, on 1B to 70B rows -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "gpus", "more"),
    [
        ("Llama-3.2-1B", 32, {"global_batch": 512}),
        ("Llama-3.2-1B", 8, {"global_batch": 128, "gpu": "A100 80GB"}),
        ("Llama-3-8B", 8, {"global_batch": 128, "memory": 288 * GB, "gpu": "B200"}),
    ],
)
def test_ddp_when_it_fits_and_throughput_is_wanted(name, gpus, more):
    found = plan(name, gpus, **more)
    assert found.best.strategy == "ddp" and "it fits, communicates once a step" in found.recommendation
    assert found.best.seconds <= (1 + CLOSE) * found.fastest.seconds


@pytest.mark.parametrize(
    ("name", "gpus", "more"),
    [
        ("Llama-3-8B", 64, {"sequence": 8192, "global_batch": 256}),
        ("Llama-2-13B", 64, {"global_batch": 256}),
        ("Qwen2.5-32B", 64, {"global_batch": 256}),
        ("Llama-3-70B", 64, {"global_batch": 128}),
        ("Llama-3-70B", 256, {"global_batch": 512}),
    ],
)
def test_fsdp_when_ddp_does_not_fit(name, gpus, more):
    found = plan(name, gpus, **more)
    assert not found.row("ddp").fits and found.best.strategy == "fsdp"
    assert found.recommendation.startswith("Take FSDP") and "DDP lacks" in found.recommendation


@pytest.mark.parametrize(
    ("name", "network", "batch"), [("Llama-3-8B", 100, 64), ("Llama-3-8B", 100, 256), ("Llama-2-13B", 400, 512)]
)
def test_hsdp_when_the_fabric_binds(name, network, batch):
    found = plan(name, 64, network=network, global_batch=batch)
    assert (found.best.strategy, found.best.shard_size) == ("hsdp", 8), "groups of a node"
    assert "FSDP loses" in found.recommendation and "across nodes" in found.recommendation
    fsdp = found.row("fsdp")
    assert found.best.prediction.communication["across"] < fsdp.prediction.communication["across"]
    fast = plan(name, 64, network=12800, global_batch=batch)
    assert fast.row("fsdp").seconds < 1.05 * fast.row("hsdp", shard_size=8).seconds, "on a fast fabric it does not pay"


# --- what it says ----------------------------------------------------------------------------------------------------


def test_what_would_fit_does_fit():
    found = plan("Llama-3-70B", 8, global_batch=16)
    assert found.best is None and found.recommendation.startswith("Nothing fits: FSDP, full recomputation")
    assert found.would_fit == ("FSDP with full recomputation on 32 GPUs would fit",)
    assert plan("Llama-3-70B", 32).best is not None and plan("Llama-3-70B", 16).best is None
    long = plan("Llama-3-8B", 8, sequence=131072)
    assert long.best is None
    tokens = next(int(each.split()[2].replace(",", "")) for each in long.would_fit if each.startswith("sequences of"))
    assert plan("Llama-3-8B", 8, sequence=tokens).best is not None
    assert plan("Llama-3-8B", 8, sequence=tokens + 512).best is None
    long = plan("Llama-3-8B", 64, sequence=65536)
    assert any(each.startswith("units of TP 2 x PP 1 would fit") for each in long.would_fit)
    small = plan("Llama-3-70B", 8, memory=4 * GB)
    assert "GPUs of at least" in small.recommendation


def test_one_gpu_and_groups():
    found = plan("GPT-2", 1, sequence=1024)
    assert {row.strategy for row in found.rows} == {"ddp"} and found.best.prediction.exposed == 0
    assert group_sizes(plan("GPT-2", 64, sequence=1024).ask) == [2, 4, 8, 16, 32]
    assert group_sizes(plan("GPT-2", 24, sequence=1024).ask) == [2, 4, 8]
    assert group_sizes(plan("GPT-2", 12, gpus_per_node=6, sequence=1024).ask) == [2, 3, 6]


def test_it_draws_itself_and_is_plain_json():
    found = plan("Llama-3-8B", 64, network=400, global_batch=512)
    html, text, said = found._repr_html_(), repr(found), found.as_json()
    assert html.count("<tr") == len(found.rows) + 1 and html.count("(recommended)") == 1
    assert found.recommendation in text and all(row.title in text for row in found.rows)
    assert json.loads(json.dumps(said))["best"]["strategy"] == found.best.strategy
    assert len(said["rows"]) == len(found.rows) == 18
    for row, plain in zip(found.rows, said["rows"], strict=True):
        assert plain["step_seconds"] == row.seconds and plain["fits"] is row.fits
    assert found.row("zero3") == found.row("fsdp")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": "Lama-3-8B"}, "did you mean 'Llama-3-8B'"),
        ({"model": 8}, "model is"),
        ({"gpus": 0}, "gpus is 0; it is a number of GPUs: give a whole number of at least 1"),
        ({"gpus": 12}, "gpus is 12, which nodes of gpus_per_node = 8 do not make up: give a multiple"),
        ({"gpu": "T4"}, "gpu is 'T4'"),
        ({"gpu": "A100 80GB", "precision": "fp8"}, "no published run in fp8"),
        ({"memory": 80}, "memory is 80; it is a GPU's memory in bytes: give at least 1e8, such as 80e9"),
        ({"network": 0}, "network is 0"),
        ({"sequence": 0}, "sequence is 0"),
        ({"model": "GPT-2", "sequence": 4096}, "has learned 1,024 positions: give no more"),
        ({"global_batch": 9}, "which 8 data-parallel GPUs do not share evenly: give 8 or 16"),
        ({"global_batch": 4}, "do not share evenly: give at least 8, or plan units of several GPUs with hybrid_job"),
        ({"reserve": 1}, "reserve is 1"),
        ({"precision": "fp16"}, "precision is 'fp16'"),
    ],
)
def test_bad_input_is_one_sentence(wrong, said):
    with pytest.raises((ValueError, KeyError)) as caught:
        plan(**{"model": "Llama-3-8B", "gpus": 8, **wrong})
    message = str(caught.value.args[0])
    assert said in message and "\n" not in message and len(message) < 400


def test_the_command(capsys):
    from utils.__main__ import main

    assert main(["plan", "Llama-3-8B", "--gpus", "64", "--network", "100", "--global-batch", "64", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["best"]["shard_size"] == 8 and said["network_gigabits"] == 100
    assert main(["plan", "Llama-3-70B", "--gpus", "8"]) == 1 and "Nothing fits" in capsys.readouterr().out
    assert main(["plan", "Lama-3-8B", "--gpus", "8"]) == 2
    assert "did you mean 'Llama-3-8B'" in capsys.readouterr().err


def test_whatever_is_given_is_answered_or_refused_in_one_sentence():
    junk = [None, -1, 0, 3, 1.5, float("nan"), float("inf"), "8", True, [], 10**30, 1e-40, "bf16", b"x", 4096, 80e9]
    names = {
        plan: ("gpus_per_node", "gpu", "memory", "network", "inside", "sequence", "global_batch", "reserve"),
        hybrid_job: ("tensor", "pipeline", "context", "strategy", "micro_batch", "again", "global_batch", "software"),
    }
    refused = 0
    for function, fields in names.items():
        for first, second in product(fields, fields):
            for i, value in enumerate(junk):
                given = {first: value, second: junk[(7 * i + 3) % len(junk)]}
                try:
                    assert repr(function("GPT-2", 8, **{"sequence": 512, **given}))
                except ValueError as error:
                    refused += 1
                    assert "\n" not in str(error) and len(str(error)) < 400
    assert refused > 1000


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"memory": 80e18}, "it is a GPU's memory in bytes: give at most 1e13, such as 80e9"),
        ({"network": 400e9}, "it is Gbit/s of a node to the others: give at most 1e6, such as 3200"),
        ({"inside": 450e9}, "it is GB/s of a GPU to the others on its node: give at most 100000, such as 450"),
    ],
)
def test_numbers_in_another_unit_are_noticed(wrong, said):
    for ask in (plan, hybrid_job, hybrid_jobs):
        if ask is plan or "inside" not in wrong:
            with pytest.raises(ValueError) as caught:
                ask("Llama-3-8B", 8, **wrong)
            assert said in str(caught.value)


def test_no_unit_is_an_error_and_no_empty_list():
    for wrong in ({"model": 8}, {"gpus": None}, {"gpus": -1}, {"again": "some"}, {"micro_batch": 0}, {"memory": 80}):
        with pytest.raises(ValueError, match=r"give|choose"):
            hybrid_jobs(**{"model": "Llama-3-8B", "gpus": 8, **wrong})
    with pytest.raises(ValueError, match="micro-batches of 3 do not share evenly: give a multiple of 24"):
        hybrid_jobs("Llama-3-8B", 8, micro_batch=3, global_batch=8)
    with pytest.raises(ValueError, match="give what hybrid_job returns"):
        placements(None)


def test_rows_that_a_plan_has_not():
    found = plan("Llama-3-8B", 8)
    for asked, said in (
        (("dpp",), "did you mean 'ddp'"),
        (("ddp", "some"), "again is 'some'"),
        (("ddp", None, 2), "shard_size is 2, which is in no row of this plan: ddp has no groups: leave it out"),
        (("hsdp", None, 3), "shard_size is 3, which is in no row of this plan: give one of 2, 4"),
    ):
        with pytest.raises(ValueError) as caught:
            found.row(*asked)
        assert said in str(caught.value)


def test_whatever_is_said_to_fit_fits():
    told = 0
    for name, gpus, memory, sequence in product(
        ("Pythia-31M", "GPT-2-large", "Llama-3.2-1B", "Llama-2-13B", "Llama-3-70B"), (1, 2, 8, 64),
        (0.2e9, 1e9, 16e9, 80e9), (1024, 131072),
    ):  # fmt: skip
        tokens = min(sequence, PRESETS[name].learned_positions or sequence)
        found = plan(name, gpus, memory=memory, sequence=tokens)
        assert bool(found.would_fit) == (found.best is None)
        for said in found.would_fit:
            words = [word.replace(",", "") for word in said.split()]
            if said.startswith("FSDP with"):
                assert plan(name, int(words[-4]), memory=memory, sequence=tokens).best, said
            elif said.startswith("sequences of"):
                assert int(words[2]) < tokens and plan(name, gpus, memory=memory, sequence=int(words[2])).best, said
            elif said.startswith("units of"):
                tensor, pipeline = int(words[3]), int(words[6])
                unit = hybrid_job(name, gpus, tensor, pipeline, memory=memory, sequence=tokens, again="full")
                assert tensor * pipeline > 1 and unit.fits, said
            elif said.startswith("GPUs of at least"):
                assert float(words[4]) * GB > memory
            told += 1
    assert told > 60


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["zzz", "--gpus", "8"], "choose one of Llama-1-7B, "),
        (
            ["Llama-3-8B", "--gpus", "8", "--memory", "80e9"],
            "it is a GPU's memory in GB: give at most 10000, such as 80",
        ),
        (["Llama-3-8B", "--gpus", "8", "--memory", "nan"], "memory is nan"),
        (
            ["Llama-3-8B", "--gpus", "8", "--memory", "-1"],
            "memory is -1.0; it is a GPU's memory in GB: give at least 0.1",
        ),
        (["Llama-3-8B", "--gpus", "64", "--global-batch", "32"], "--global-batch is 32, which 64 data-parallel GPUs"),
        (["Llama-3-8B", "--gpus", "12"], "which nodes of --gpus-per-node = 8 do not make up: give a multiple"),
        (["Llama-3-8B", "--gpus", "8", "--gpu", "A100"], "did you mean 'A100 80GB' or 'A100 40GB'?"),
    ],
)
def test_the_command_refuses_in_one_line_with_status_2(capsys, given, said):
    from utils.__main__ import main

    assert main(["plan", *given]) == 2
    out, err = capsys.readouterr()
    assert not out and said in err and err.count("\n") == 1 and err.startswith("python -m utils plan: ")
