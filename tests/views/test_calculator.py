"""What all calculators share: a misspelt setting is refused in a sentence."""

import pytest

from utils.runtime.dry_run import dry_run
from utils.views.collective_calculator import CollectiveCalculator
from utils.views.dry_run_widget import DryRunWidget
from utils.views.fit_calculator import FitCalculator
from utils.views.lifecycle_calculator import LifecycleCalculator
from utils.views.lifecycle_stepper import LifecycleStepper
from utils.views.memory_calculator import MemoryCalculator
from utils.views.moves_calculator import MovesCalculator
from utils.views.overlap_calculator import OverlapCalculator
from utils.views.peers_calculator import PeersCalculator
from utils.views.ring_calculator import RingCalculator
from utils.views.ring_stepper import RingStepper
from utils.views.zero_calculator import ZeroCalculator

CALCULATORS = {
    CollectiveCalculator: ("rank", "ranks"),
    FitCalculator: ("gpu", "gpus"),
    LifecycleCalculator: ("layer", "layers"),
    LifecycleStepper: ("Ranks", "ranks"),
    MemoryCalculator: ("memories", "memory"),
    MovesCalculator: ("shardsize", "shard_size"),
    OverlapCalculator: ("token", "tokens"),
    PeersCalculator: ("gpu", "gpus"),
    RingCalculator: ("rank", "ranks"),
    RingStepper: ("steps", "step"),
    ZeroCalculator: ("microbatches", "micro_batches"),
}


@pytest.mark.parametrize("kind", [*CALCULATORS, DryRunWidget], ids=lambda kind: kind.__name__)
def test_a_misspelt_setting_is_refused_in_a_sentence(kind):
    made = kind(dry_run) if kind is DryRunWidget else kind()
    wrong, right = CALCULATORS.get(kind, ("recomputed", "recompute"))
    picture = made._image.value
    with pytest.raises(AttributeError, match=f"the setting of a {kind.__name__} is '{wrong}'") as caught:
        setattr(made, wrong, 4)
    assert f"did you mean '{right}'" in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(AttributeError, match=f"choose one of .*{right}"):
        made.qqqq = 4
    assert made._image.value == picture
    for name in made.settings():
        setattr(made, name, getattr(made, name))
    made.layout.width = "900px"
    made.close_all()
