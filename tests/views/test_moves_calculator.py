"""What a step moves: the bars are the laws of traffic, and the words tell what the bars show."""

import pytest

from utils.theory.memory import STRATEGIES
from utils.theory.models import PRESETS
from utils.theory.traffic import step_bytes
from utils.views.figure import WIDTH
from utils.views.kinds import GRADIENT, WEIGHTS
from utils.views.moves import HEIGHT, PRECISIONS, Question, moves_picture, moves_scene, moves_words
from utils.views.moves_calculator import MovesCalculator
from utils.views.png import size

LLAMA = PRESETS["Llama-2-7B"]


@pytest.fixture
def calculator():
    made = MovesCalculator()
    yield made
    made.close_all()


def test_the_result_is_the_laws(calculator):
    calculator.micro_batches, calculator.nodes, calculator.gpus = 3, 4, 32
    for precision, (gathered, reduced) in PRECISIONS.items():
        for rules in ("ring", "gloo"):
            calculator.precision, calculator.rules = precision, rules
            for strategy in STRATEGIES:
                said = step_bytes(
                    LLAMA.parameters, strategy, 32, 8 if strategy == "hsdp" else None, 4, gathered, 3,
                    gradient_bytes_per_element=reduced, rules=rules,
                )  # fmt: skip
                assert calculator.result.traffic[strategy] == said
            assert calculator.result.words.replace("'", "&#x27;") in calculator._words.value


def test_a_root_that_stays_gathered_saves_its_second_gather(calculator):
    before = calculator.result.traffic
    calculator.root_kept = True
    after = calculator.result.traffic
    root = LLAMA.units[0].parameters
    assert before["fsdp"].per_rank - after["fsdp"].per_rank == pytest.approx(2 * root * 63 / 64)
    assert before["ddp"] == after["ddp"]


def test_there_are_never_more_nodes_or_larger_groups_than_ranks(calculator):
    calculator.gpus, calculator.nodes, calculator.shard_size = 4, 64, 64
    asked = calculator.result.question
    assert (asked.nodes, asked.shard_size, asked.world_size) == (4, 4, 4)
    assert calculator.nodes == 64  # the slider stays where it is, for when there are more ranks


def test_bars_are_parted_into_parameters_and_gradients():
    asked = Question("Llama-2-7B", LLAMA.parameters, world_size=8)
    boxes = [box for box in moves_scene(asked).boxes if box.height > 15]
    parameters = sorted(box.width for box in boxes if box.fill == WEIGHTS.colour)
    gradients = sorted(box.width for box in boxes if box.fill == GRADIENT.colour)
    unit = parameters[0]
    assert [width / unit for width in parameters] == pytest.approx([1, 1, 2, 2, 2])
    assert [width / unit for width in gradients] == pytest.approx([1, 1, 1, 1, 1, 2])


def test_the_words_tell_everything():
    asked = Question("Llama-2-7B", LLAMA.parameters, world_size=64, nodes=8)
    text = moves_words(asked)
    assert "ddp: each rank 26.5 GB, each node 185.7 GB inside and 26.5 GB across" in text
    assert "fsdp sends 1.50 times what ddp sends." in text
    assert "Across nodes hsdp, in groups of 8, sends 0.59 times what fsdp sends." in text
    assert moves_words(Question("Llama-2-7B", LLAMA.parameters, world_size=1, shard_size=1)).endswith(
        "One rank has nobody to send to."
    )


def test_the_picture_has_its_size():
    assert size(moves_picture(Question("Llama-2-7B", LLAMA.parameters)).image_bytes()) == (WIDTH, HEIGHT)
