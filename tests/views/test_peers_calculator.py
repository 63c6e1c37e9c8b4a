"""Why calculators disagree: the bars are the peers' answers, the list is the explanation's."""

import pytest

from utils.theory.activations import activation_bytes
from utils.theory.explain import explain
from utils.theory.models import PRESETS
from utils.theory.peers import STAGES, deepspeed_zero2, job_estimates, own_estimate
from utils.views.figure import WIDTH
from utils.views.peers import explanation_picture
from utils.views.peers_calculator import PeersCalculator
from utils.views.png import size

LLAMA = PRESETS["Llama-2-7B"]


@pytest.fixture
def calculator():
    made = PeersCalculator()
    yield made
    made.close_all()


def test_the_result_is_the_laws(calculator):
    for stage in range(4):
        calculator.stage = stage
        assert calculator.result.estimates == job_estimates(LLAMA, 8, stage, 4096)
        for first in STAGES:
            calculator.first = first
            why = calculator.result.explanation
            if stage in STAGES[first]:
                assert why.difference == sum(term.size for term in why.terms)
                assert why == explain(calculator.result.estimates[first], calculator.result.estimates["this suite"])
            else:
                called = f"ZeRO-{stage}" if stage else "plain data parallelism"
                assert why is None and f"No answer for {called} from {first}." in calculator.result.words


def test_activations_go_into_this_suites_answer(calculator):
    before = calculator.result.estimates["this suite"].total
    calculator.activations = True
    kept = activation_bytes(LLAMA, 4096, 1).total
    assert calculator.result.estimates["this suite"].total - before == pytest.approx(kept, abs=1)


def test_a_sequence_is_no_longer_than_the_model_has_learned(calculator):
    calculator.model, calculator.sequence, calculator.activations = "GPT-2", 2048, True
    kept = activation_bytes(PRESETS["GPT-2"], 1024).total
    assert calculator.result.question.sequence == 1024 and calculator.result.question.activations == kept


def test_the_words_give_every_answer_and_every_reason(calculator):
    words = calculator.result.words
    assert "this suite 25.3 GB; DeepSpeed 28.6 GB; EleutherAI 132.2 GB" in words and "accelerate no answer" in words
    assert "DeepSpeed says 3.37 GB more than this suite" in words
    assert "fp32 gradients +3.37 GB (only DeepSpeed ZeRO-2 counts it: 4 B per parameter, shared among 8)." in words
    calculator.second = "DeepSpeed"
    assert calculator.result.words.count("DeepSpeed and DeepSpeed agree.") == 1


def test_an_explanation_draws_itself():
    why = explain(deepspeed_zero2(7e9, 8, cpu_offload=False), own_estimate(7e9, 8, "zero2"))
    bundle = why._repr_mimebundle_()
    assert bundle["text/plain"] == str(why) and "fp32 gradients" in bundle["text/html"]
    width, height = size(explanation_picture(why).image_bytes())
    assert width == WIDTH and height > 200
