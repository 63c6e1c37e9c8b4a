"""Units of TP x PP x CP with data parallelism around them: memory, bytes, and why data parallelism is the outer one."""

import pytest

from utils.theory.memory import model_states
from utils.theory.models import PRESETS
from utils.theory.planner import hybrid_job, hybrid_jobs, placements
from utils.theory.traffic import collective_bytes
from utils.theory.units import GB


def test_bytes_between_units_are_the_gradients_of_each_part():
    found = hybrid_job("Llama-3-70B", 64, 8, 2, global_batch=64, strategy="ddp")
    held = PRESETS["Llama-3-70B"].parameters / 16
    assert found.units == 4 and found.job.unit == 16
    assert found.data_bytes == pytest.approx(collective_bytes("all_reduce", 2 * held, 4))
    assert found.unit_bytes == pytest.approx(16 * found.data_bytes)
    sharded = hybrid_job("Llama-3-70B", 64, 8, 2, global_batch=64)
    assert sharded.data_bytes == pytest.approx(found.data_bytes), "zero1: the same in two halves"
    more = hybrid_job("Llama-3-70B", 128, 8, 2, global_batch=128)
    assert more.unit_bytes < 1.2 * sharded.unit_bytes, "a unit sends hardly more however many there are"


def test_parts_of_a_sequence_hold_the_same_weights_and_leave_the_unit_once():
    """A ring through 4 units of 2 parts leaves each unit once; one unit alone sends nobody anything."""
    found = hybrid_job("Llama-3-70B", 64, 8, 1, 2, sequence=8192, strategy="ddp")
    held = PRESETS["Llama-3-70B"].parameters / 8
    assert found.units == 4
    assert found.unit_bytes == pytest.approx(8 * collective_bytes("all_reduce", 2 * held, 8))
    alone = hybrid_job("Llama-3-70B", 64, 1, 1, 64, sequence=131072)
    assert alone.unit_bytes == 0 < alone.data_bytes
    assert repr(alone).startswith("1 unit of TP 1 x PP 1 x CP 64") and "sends 0.0 GB to the others" in repr(alone)


@pytest.mark.parametrize("name", ["tensor", "pipeline"])
def test_all_units_are_tried_and_none_is_asked_for(name):
    with pytest.raises(ValueError, match=f"{name} is 8, but all units are tried here: leave it out, or give it to"):
        hybrid_jobs("Llama-3-70B", 64, **{name: 8})


def test_memory_is_states_and_activations_of_the_first_stage():
    one = hybrid_job("Llama-2-7B", 8, global_batch=8, strategy="ddp", sequence=512)
    states = model_states(PRESETS["Llama-2-7B"].parameters, 8, "ddp").total
    assert states < one.memory < 1.3 * states
    halved = hybrid_job("Llama-2-7B", 8, 2, global_batch=8, strategy="ddp", sequence=512)
    assert 0.45 < halved.memory / one.memory < 0.55
    few, many = (hybrid_job("Llama-2-7B", 8, 1, 4, global_batch=2 * m, sequence=2048) for m in (1, 8))
    assert many.memory > few.memory, "a pipeline keeps as many micro-batches as it has stages"
    longer = hybrid_job("Llama-3-8B", 8, 1, 1, 8, sequence=65536)
    assert longer.memory < hybrid_job("Llama-3-8B", 8, 8, 1, 1, sequence=65536, strategy="zero1").memory * 3


def test_published_configurations_fit_their_gpus():
    """They ran: Korthikanti's GPT-3 175B on 64 A100 80GB, NeMo's Llama-2-70B on 64 H100 80GB."""
    gpt = hybrid_job(
        "GPT-3-175B", 64, 8, 8, gpu="A100 80GB", network=1600, sequence=2048, global_batch=64, again="attention"
    )
    llama = hybrid_job("Llama-2-70B", 64, 4, 4, interleaved=20, global_batch=128)
    assert gpt.fits and llama.fits
    assert gpt.prediction.mfu == pytest.approx(0.514, abs=0.06)


@pytest.mark.parametrize("name", ["Llama-3-8B", "Llama-3-70B"])
@pytest.mark.parametrize("network", [400, 3200])
def test_data_parallelism_is_the_outer_dimension(name, network):
    for tensor, pipeline in ((8, 1), (8, 2), (4, 2)):
        found = hybrid_job(name, 64, tensor, pipeline, global_batch=128, network=network)
        outer = placements(found)
        assert outer["data"] < outer["tensor"] / 2
    assert hybrid_job(name, 64, global_batch=64).data_bytes > hybrid_job(name, 64, 8, global_batch=64).data_bytes


def test_jobs_come_fastest_first_and_what_fits_before_what_does_not():
    found = hybrid_jobs("Llama-3-70B", 64, global_batch=128)
    fitting = [job for job in found if job.fits]
    assert fitting and found[: len(fitting)] == fitting
    assert [job.prediction.seconds for job in fitting] == sorted(job.prediction.seconds for job in fitting)
    assert "units of TP" in repr(found[0]) and "lacks" in repr(found[-1])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tensor": 3}, "does not divide"),
        ({"pipeline": 7, "gpus": 56}, "tensor_parallel is"),
        ({"strategy": "fsdp"}, "strategy is 'fsdp'; around units it is ddp or zero1"),
        ({"global_batch": 7}, "global_batch is 7, which 8 units with micro-batches of 1 do not share evenly"),
        ({"tensor": 16, "gpus": 64}, "tensor_parallel is 16"),
    ],
)
def test_bad_input_is_one_sentence(wrong, said):
    if wrong == {"pipeline": 7, "gpus": 56}:
        assert hybrid_job("Llama-3-8B", 56, 8, 7).units == 1  # stages need not be equal
        return
    with pytest.raises(ValueError) as caught:
        hybrid_job(**{"model": "Llama-3-8B", "gpus": 64, "tensor": 8, **wrong})
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_memory_and_gpu_are_taken_as_given():
    small = hybrid_job("Llama-3-8B", 8, 8, memory=16 * GB, global_batch=1)
    assert small.ask.budget == pytest.approx(14.4 * GB)
