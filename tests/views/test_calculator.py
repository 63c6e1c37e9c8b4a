"""What all calculators share: a misspelt setting is refused in a sentence, and no label or number is cut off."""

import importlib
import pkgutil

import pytest
from ipywidgets import SelectionSlider

from utils import views
from utils.views.calculator import Calculator
from utils.views.dry_run_widget import DryRunWidget
from utils.views.figure import DOTS_PER_INCH
from utils.views.lettering import outline

for module in pkgutil.iter_modules(views.__path__):
    importlib.import_module(f"utils.views.{module.name}")


def kinds_of(base):
    """Those that no other calculator is made from."""
    return [each for kind in base.__subclasses__() for each in kinds_of(kind) or [kind]]


KINDS = sorted(kinds_of(Calculator), key=lambda kind: kind.__name__)

FONT, READOUT = 13, 72  # pixels: of Jupyter's letters, and of the place for a slider's value


def test_there_are_calculators():
    assert len(KINDS) >= 13


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def made(request):
    kind = request.param
    found = kind(lambda *_, **__: None) if kind is DryRunWidget else kind()
    yield found
    found.close_all()


def test_a_misspelt_setting_is_refused_in_a_sentence(made):
    kind, right = type(made).__name__, max(made.settings(), key=len)
    picture = made._image.value
    with pytest.raises(AttributeError, match=f"the setting of a {kind} is '{right}x'") as caught:
        setattr(made, f"{right}x", 4)
    assert f"did you mean '{right}'" in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(AttributeError, match=f"choose one of .*{right}"):
        made.qqqq = 4
    assert made._image.value == picture


def test_settings_can_be_set_and_so_can_what_every_widget_has(made):
    for name in made.settings():
        setattr(made, name, getattr(made, name))
    made.layout.width = "900px"
    made.result = made.result


def test_no_label_and_no_value_is_cut_off(made, controls):
    def wide(text):
        return outline(text, FONT * 72 / DOTS_PER_INCH, False)[2]  # DejaVu Sans, which is among the widest

    for control in controls(made):
        if room := getattr(control.style, "description_width", ""):
            assert wide(control.description) <= float(room.removesuffix("px")), control.description
        if isinstance(control, SelectionSlider):
            longest = max((label for label, _ in control._options_full), key=wide)
            assert wide(longest) <= READOUT, f"{control.description}: {longest}"
