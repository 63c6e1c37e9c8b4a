"""From a slider's move to the new picture, in the kernel, for every calculator; and what a thousand moves leave behind.

A move is what the front end's message does: it sets the control's value, the scene is reckoned, the one figure is
redrawn, encoded and handed to the image widget. The calculators are timed in turns.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys

from matplotlib.figure import Figure as Drawing

from benchmarks.figures import Figure, in_turns, spread
from utils.views.calculator import Calculator
from utils.views.collective_calculator import CollectiveCalculator
from utils.views.controls import GPUS
from utils.views.fit_calculator import FitCalculator
from utils.views.hybrid_calculator import NODES, HybridCalculator
from utils.views.infra_feed_calculator import FeedCalculator
from utils.views.infra_restarts_calculator import EVERY, RestartsCalculator
from utils.views.infra_way_calculator import OVERSUBSCRIPTIONS, WayCalculator
from utils.views.lifecycle_calculator import LifecycleCalculator
from utils.views.memory_calculator import MemoryCalculator
from utils.views.moves_calculator import MovesCalculator
from utils.views.overlap_calculator import OverlapCalculator
from utils.views.peers_calculator import PeersCalculator
from utils.views.planner_units_widget import MANY_GPUS, UnitCalculator
from utils.views.planner_widget import Planner
from utils.views.ring_calculator import RingCalculator
from utils.views.zero_calculator import ZeroCalculator

BOUND = 0.030  # seconds
SIMULATING = 0.050  # seconds, of the calculators that simulate a step, or draw all stages of one
MOVES = 1000


def bound(name: str) -> float:
    """Seconds that the median move of a calculator may take."""
    return SIMULATING if name in ("overlap", "ring", "zero", "lifecycle", "hybrid") else BOUND


def sliders() -> dict[str, tuple[Calculator, str, tuple[float, ...]]]:
    """By name: each calculator at a crowded setting, the slider that is moved, and its values."""
    fit = FitCalculator("Llama-2-70B", gpus=64, recipe="deepspeed")
    peers = PeersCalculator("Llama-2-70B", stage=3, first="EleutherAI", second="this suite", activations=True)
    return {
        "fit": (fit, "gpus", GPUS),
        "moves": (MovesCalculator("Llama-2-70B", micro_batches=4), "gpus", GPUS),
        "peers": (peers, "gpus", GPUS),
        "memory": (MemoryCalculator("Llama-2-7B"), "gpus", GPUS),
        "collective": (CollectiveCalculator("all_to_all"), "ranks", tuple(range(2, 17))),
        "overlap": (OverlapCalculator("Llama-2-70B"), "ranks", GPUS[1:]),
        "ring": (RingCalculator(), "ranks", GPUS[1:]),
        "zero": (ZeroCalculator("Llama-2-70B", stage=3, micro_batches=4), "gpus", GPUS),
        "lifecycle": (LifecycleCalculator("Llama-2-70B"), "gpus", GPUS[1:]),
        "hybrid": (HybridCalculator("Llama-2-7B"), "nodes", NODES),
        "way": (WayCalculator(pieces="pieces of 4 MB", placement="at random"), "oversubscription", OVERSUBSCRIPTIONS),
        "restarts": (RestartsCalculator(), "every", EVERY),
        "feed": (FeedCalculator(), "gpus", GPUS),
        "planner": (Planner("Llama-2-70B"), "gpus", GPUS),
        "units": (UnitCalculator("Llama-2-70B"), "gpus", MANY_GPUS),
    }


def mover(calculator: Calculator, slider: str, values: tuple[float, ...]):
    """A function that moves the slider on by one value at each call."""
    turn = 0

    def move() -> None:
        nonlocal turn
        turn += 1
        setattr(calculator, slider, values[turn % len(values)])

    return move


def alive(kind: type) -> int:
    """How many objects of a kind there are."""
    gc.collect()
    return sum(isinstance(each, kind) for each in gc.get_objects())


def main() -> None:
    """Measure and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=100, help="moves of each calculator that are timed")
    rounds = arguments.parse_args().rounds
    found = {
        name: (calculator, mover(calculator, slider, values))
        for name, (calculator, slider, values) in sliders().items()
    }
    calls = {name: move for name, (_, move) in found.items()}
    in_turns(calls, 16)  # every value of each slider once: outlines of words are kept from here on
    times = in_turns(calls, rounds)
    print(f"{'calculator':<12}{'median, ms':>12}{'95 %, ms':>12}{'A against A':>14}")
    for name, each in times.items():
        late = sorted(each)[int(0.95 * len(each))]
        print(f"{name:<12}{1e3 * statistics.median(each):>12.1f}{1e3 * late:>12.1f}{spread(each):>14.2f}")
    before = {kind: alive(kind) for kind in (Drawing, object)}
    for move in calls.values():
        for _ in range(MOVES):
            move()
    more = {kind: alive(kind) - before[kind] for kind in before}
    for most in (BOUND, SIMULATING):
        mine = [name for name in times if bound(name) == most]
        slowest = max(mine, key=lambda name: statistics.median(times[name]))
        median = statistics.median(times[slowest])
        name = f"slider to picture in the kernel, slowest of {len(mine)}: {slowest}, ms (median)"
        Figure(name, 1e3 * median, f"<= {1e3 * most:g}", spread(times[slowest]), median <= most).print()
    Figure(f"figures more after {MOVES} moves of each", more[Drawing], "0", None, more[Drawing] == 0).print()
    kept = more[object] / len(calls)
    Figure(f"objects more after {MOVES} moves, per calculator", kept, "<= 1000", None, kept <= 1000).print()


if __name__ == "__main__":
    sys.exit(main())
