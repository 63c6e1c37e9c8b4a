"""The history of what a rank holds, as a picture: blocks where the bytes are, words without times."""

import pytest

from utils.runtime.holdings import KINDS, History, Holdings, Sample
from utils.theory.units import GB, KiB, MiB
from utils.views.figure import WIDTH
from utils.views.holdings import HEIGHT, history_picture, history_scene
from utils.views.kinds import LOOKS, round_steps
from utils.views.png import size


def samples(steps=2, layers=4, unit=100 * KiB):
    """A mixed-precision history as a ledger would give it."""
    rest = dict(weights=2 * unit, gradients=2 * unit, master_weights=4 * unit, moments=8 * unit, other=64)
    found = []
    for _ in range(steps):
        for layer in range(layers):
            found.append(Sample("forward", f"{layer}", True, Holdings(**rest, activations=(layer + 1) * unit)))
        for layer in reversed(range(layers)):
            found.append(Sample("backward", f"{layer}", False, Holdings(**rest, activations=layer * unit)))
        found.append(Sample("step", "", False, Holdings(**{**rest, "gradients": 6 * unit})))
        found.append(Sample("step", "", True, Holdings(**rest)))
    return found


def test_the_kinds_are_those_of_the_ledger_in_its_order():
    assert tuple(LOOKS) == KINDS
    assert len({(look.colour, look.hatched) for look in LOOKS.values()}) == len(KINDS)


@pytest.mark.parametrize("steps", [1, 2, 6])
@pytest.mark.parametrize("unit", [1, 100 * KiB, 3 * GB])
def test_words_do_not_overlap_or_leave_the_picture(readable, steps, unit):
    readable(history_scene(samples(steps, unit=unit), "Two steps"), WIDTH, HEIGHT)


def test_the_picture_has_its_size_and_fits_a_single_event(readable):
    picture = History(samples()).picture("A step")
    assert size(picture.image_bytes()) == (WIDTH, HEIGHT)
    only = [Sample("note", "after loading", True, Holdings())]
    readable(history_scene(only), WIDTH, HEIGHT)


def test_blocks_are_as_high_as_their_bytes():
    scene = history_scene(samples(1))
    blocks = [box for box in scene.boxes if box.fill == LOOKS["weights"].colour and box.height > 20]
    assert len(blocks) == 1  # nothing changed in it, so it is one block
    assert blocks[0].height == pytest.approx(220 * 2 / 20, rel=1e-3)  # at the peak 20 units are held
    assert blocks[0].width == pytest.approx(WIDTH - 84 - 16)


def test_the_words_tell_each_kind_and_the_peak():
    alt = history_picture(samples(1, unit=1000), "One step").alt
    assert alt.startswith(
        "One step, 10 events: weights 2,000 B throughout; gradients 2,000 B at first, at most 6,000 B"
    )
    assert "activations 1,000 B at first, at most 4,000 B (forward of 3 done), 0 B at last" in alt
    assert alt.endswith("Most in all: 20,064 B when forward of 3 done.")


def test_a_disturbed_ledger_changes_the_words():
    honest, disturbed = samples(1), samples(1, unit=110 * KiB)
    assert history_picture(honest).alt != history_picture(disturbed).alt


def test_no_samples_are_refused():
    with pytest.raises(ValueError, match="there are no samples to draw"):
        history_picture([])


def test_a_history_shows_itself():
    bundle = History(samples(1))._repr_mimebundle_()
    assert bundle["image/png"] and "Held over a step, 10 events" in bundle["text/plain"]


@pytest.mark.parametrize(
    ("most", "binary", "steps"),
    [
        (3.3 * MiB, True, [0, MiB, 2 * MiB, 3 * MiB]),
        (900 * KiB, True, [0, 200 * KiB, 400 * KiB, 600 * KiB, 800 * KiB]),
        (90 * GB, False, [0, 20 * GB, 40 * GB, 60 * GB, 80 * GB]),
        (1.2 * GB, False, [0, 0.5 * GB, GB]),
        (3, True, [0, 1, 2, 3]),
    ],
)
def test_scales_have_round_steps(most, binary, steps):
    assert round_steps(most, binary) == pytest.approx(steps)
