"""The picture of a breakdown: its bars are the bytes, and it can be read whatever the numbers."""

import pytest

from utils.theory.architecture import Architecture
from utils.theory.breakdown import PART_NAMES, training_memory
from utils.theory.memory import STRATEGIES
from utils.theory.models import PRESETS
from utils.theory.units import GB
from utils.views.breakdown import breakdown_height, breakdown_picture, breakdown_scene, breakdown_words
from utils.views.figure import WIDTH
from utils.views.palette import ACTIVATIONS
from utils.views.png import size


def example(strategy="fsdp", model="Llama-2-70B", world_size=64, sequence=2048, recomputation="none"):
    shard_size = 8 if strategy == "hsdp" else None
    return training_memory(PRESETS[model], world_size, strategy, sequence, 1, recomputation, shard_size)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("memory", [None, 16 * GB, 80 * GB, 192 * GB])
@pytest.mark.parametrize("model", ["Llama-3.2-1B", "Llama-2-70B", "Llama-3.1-405B"])
def test_words_do_not_overlap_or_leave_the_picture(readable, strategy, memory, model):
    for world_size, sequence, recomputation in ((8, 1, "none"), (16384, 131072, "none"), (64, 8192, "full")):
        breakdown = example(strategy, model, world_size, sequence, recomputation)
        readable(breakdown_scene(breakdown, memory), WIDTH, breakdown_height(breakdown))


def test_bars_are_as_long_as_their_bytes_and_the_line_stands_at_the_memory():
    breakdown = example()
    scene = breakdown_scene(breakdown, 80 * GB)
    (line,) = [line for line in scene.lines if line.width == 3]
    bars = [box for box in scene.boxes if box.height > 12]
    per_byte = (line.x0 - 244) / (80 * GB)
    assert sum(box.width for box in bars) == pytest.approx(per_byte * sum(m.total for m in breakdown.moments))
    activations = [box.width for box in bars if box.fill == ACTIVATIONS.colour]
    assert max(activations) == pytest.approx(per_byte * max(m.activations for m in breakdown.moments))


def test_the_words_tell_everything():
    breakdown = example()
    words = breakdown_words(breakdown, 80 * GB)
    assert words.startswith(breakdown.title)
    assert "At its largest, backward, block 78, end: weights 4.31 GB, gathered weights 2.76 GB" in words
    assert "92.3 GB in all. It does not fit into 80 GB." in words
    for part, name in PART_NAMES.items():
        assert (name in words) == bool(breakdown.parts[part])
    for moment in breakdown.moments:
        assert moment.name in words
    assert "It fits into 80 GB." in breakdown_words(example(recomputation="full"), 80 * GB)
    assert "fit" not in breakdown_words(breakdown)


def test_the_picture_has_its_size():
    breakdown = example()
    assert size(breakdown_picture(breakdown, 80 * GB).image_bytes()) == (WIDTH, breakdown_height(breakdown))


def test_the_longest_name_of_a_moment_has_room_where_it_is_the_peak(readable):
    wide = Architecture(512, 4, 8, 8, 192, 600, 1000, gated_mlp=False)
    breakdown = training_memory(wide, 1, "ddp", 65536, recomputation="full", recipe="fp32")
    assert breakdown.peak_moment.name == "backward, last block's attention"
    readable(breakdown_scene(breakdown), WIDTH, breakdown_height(breakdown))
