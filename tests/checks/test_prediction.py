"""A prediction keeps the learner's number and stands honestly beside the measurement."""

import math

import numpy as np
import pytest

from utils.checks.prediction import comparison, prediction


def table(guess, measured, **more):
    return repr(prediction("How many?", guess, unit="S").compare(measured, **more))


@pytest.mark.parametrize(
    ("guess", "measured", "difference", "band"),
    [
        (1.5, 1.5002, "0 %", "within 10 %"),
        (1.4, 1.5002, "-7 %", "within 10 %"),
        (1.8, 1.5002, "+20 %", "10 to 30 % off"),
        (1.0, 1.5002, "-33 %", "more than 30 % off"),
        (0, 0.0, "0 %", "within 10 %"),
        (1.5, 0.0, "+1.50 S", "more than 30 % off: the measurement is 0"),
        (-1.5, 1.5, "-200 %", "more than 30 % off"),
    ],
)
def test_bands(guess, measured, difference, band):
    row = table(guess, measured).splitlines()[2]
    assert row.endswith(f" {difference}   {band}")


def test_no_prediction_shows_the_measurement_anyway():
    text = table(None, 1.5002, law=1.5)
    assert "no prediction" in text and "1.50 S" in text
    assert "within 10 %" in text.splitlines()[-1], "the law's row is compared all the same"


def test_not_measurable_here_puts_no_number_under_measured():
    text = table(1.5, None, law=1.5)
    assert text.count("not measurable here") == 2
    assert "%" not in text


def test_text_depends_on_the_rounded_measurement_alone():
    assert table(1.4, 1.4996) == table(1.4, 1.5044)
    assert table(1.5, 1.5 * 1.1) != table(1.5, 1.5), "a tenth more is another table"


def test_a_tiny_measurement_is_not_shown_as_zero_prediction():
    assert "0.001 S" in table(0.001, 1.0)


def test_html_says_the_same_and_escapes():
    shown = prediction("<b>1 < 2?</b>", 1.5, unit="S").compare(1.5)
    assert "&lt;b&gt;" in shown._repr_html_() and "within 10 %" in shown._repr_html_()


def test_several_laws_in_one_table():
    text = repr(comparison({"all_reduce": (1.5, 1.5002), "broadcast": (0.75, None)}, unit="S"))
    assert text.count("\n") == 2 and "not measurable here" in text


def test_empty_answers_say_what_to_do():
    for empty in (None, ...):
        assert "no prediction yet: write a number of S in place of None" in repr(prediction("?", empty, unit="S"))
    assert repr(prediction("?", 33_554_432, unit="bytes")).endswith("your prediction: 33,554,432 bytes")


@pytest.mark.parametrize("bad", ["1.5", True, math.nan, math.inf, 10**400, [1.5], {}, 1j, print])
def test_bad_answers_are_refused_in_one_sentence(bad):
    with pytest.raises((TypeError, ValueError)) as refusal:
        prediction("How many?", bad)
    assert str(refusal.value).startswith("a prediction is a") and str(refusal.value).count(".") >= 1
    assert "\n" not in str(refusal.value)


def test_a_size_in_place_of_its_multiple_is_told_so():
    guess = prediction("How many?", 1.5 * 33_554_432, unit="S")
    for text in (repr(guess), repr(guess.compare(1.5)), guess.compare(1.5)._repr_html_()):
        assert "give the factor alone, such as 1.5" in text and "%" not in text
    assert "factor alone" not in repr(prediction("How many?", 50_331_648, unit="B").compare(1.5))
    assert "factor alone" not in table(1.8, 1.5)


@pytest.mark.parametrize(("bad", "kind"), [("1.5", "TypeError"), (math.nan, "ValueError")])
def test_a_notebook_shows_the_sentence_alone(bad, kind):
    with pytest.raises((TypeError, ValueError)) as refusal:
        prediction("How many?", bad)
    assert refusal.value._render_traceback_() == [f"{kind}: {refusal.value}"]


@pytest.mark.parametrize("digits", [-1, 2.5, True, "2"])
def test_bad_digits(digits):
    with pytest.raises(ValueError, match="digits is a whole number"):
        prediction("How many?", 1).compare(1, digits=digits)


def test_tensors_of_one_element_are_numbers():
    torch = pytest.importorskip("torch")
    assert prediction("?", torch.tensor(1.5)).answer == 1.5
    with pytest.raises(TypeError, match="several elements"):
        prediction("?", torch.tensor([1.0, 2.0]))
    with pytest.raises(TypeError, match="truth value"):
        prediction("?", torch.tensor(True))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: comparison([1]), "not a list"),
        (lambda: comparison(None), "give a dict such as"),
        (lambda: comparison({"a": 1}), "'a' has an int instead of a pair"),
        (lambda: comparison({"a": (1, 2, 3)}), "'a' has 3 values instead of a pair"),
        (lambda: comparison({4: (1, 1)}), "a label is text, not an int"),
        (lambda: comparison({"a": (1, 1)}, caption=3), "the caption is text"),
        (lambda: prediction("q", int), "not the class `int`"),
        (lambda: prediction("q", np.array([])), "without elements"),
    ],
)
def test_what_is_no_table_of_numbers_is_one_sentence(call, says):
    with pytest.raises(TypeError, match=says):
        call()


def test_digits_may_be_numpys():
    assert "1.50" in repr(comparison({"a": (1.5, 1.5)}, digits=np.int64(2)))
