"""How well the step-time model at scale meets published runs, beside a constant MFU per GPU type and precision."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.figures import Figure
from utils.theory.scale import changes, published_runs, score, summary
from utils.theory.scale.feasible import fits
from utils.theory.scale.score import NOISE

TABLES = Path(__file__).parents[1] / "tests" / "data"
ELSEWHERE = {"outside": "published_runs_outside.csv", "same tables": "published_runs_same_tables.csv"}


def main() -> None:
    """Print the figures: errors of the model and of the baseline, in per cent of the published throughput."""
    reference = score()
    sets = {"reference": reference}
    for name, file in ELSEWHERE.items():
        if (TABLES / file).exists():
            sets[name] = score(published_runs(TABLES / file))
    sets["all"] = tuple(row for rows in sets.values() for row in rows)
    for name, rows in sets.items():
        found = summary(rows)
        for what, model, baseline, best in (
            ("median error", found.median, found.baseline_median, found.best_median),
            ("90th percentile", found.p90, found.baseline_p90, found.best_p90),
        ):
            bound = f"< {100 * baseline:.1f} (constant MFU), < {100 * best:.1f} (the best constant)"
            bound += ", <= 8" if what == "median error" else ""
            holds = model < min(baseline, best) and (model <= 0.08 or what != "median error")
            Figure(f"{name}, {found.rows} rows: {what}, %", 100 * model, bound, None, holds).print()
    pairs = changes(rows)
    beyond = [change for change in pairs if abs(change.published) > NOISE]
    right = sum(change.sign_right for change in beyond)
    Figure(
        f"one thing changed, {len(beyond)} pairs beyond {100 * NOISE:.0f}%: sign right in",
        right,
        f"== {len(beyond)}",
        None,
        right == len(beyond),
    ).print()
    large = [change for change in pairs if abs(change.published) > 0.05]
    near = sum(abs(change.size_error) <= 0.3 for change in large)
    Figure(
        f"one thing changed, {len(large)} pairs beyond 5%: size of the change in throughput per GPU within 30% in",
        near,
        f"== {len(large)}",
        None,
        near == len(large),
    ).print()
    more = [change for change in pairs if change.what.startswith("GPUs")]
    near = sum(abs(change.together_error) <= 0.3 for change in more)
    Figure(
        f"GPU count alone, {len(more)} pairs: change in throughput of all GPUs together within 30% in",
        near,
        f"== {len(more)}",
        None,
        near == len(more),
    ).print()
    close = sum(abs(change.ratio_error) <= 0.05 for change in pairs)
    Figure(
        f"one thing changed, {len(pairs)} pairs: ratio of throughputs within 5% in", close, f"== {len(pairs)}", None,
        close == len(pairs),
    ).print()  # fmt: skip
    known = [fits(row.run) for row in rows if fits(row.run) is not None]
    ran = sum(known)
    Figure(
        f"{len(known)} runs without TP or PP: fit by theory.memory", ran, f"== {len(known)}", None, ran == len(known)
    ).print()
    for change in sorted(pairs, key=lambda change: -abs(change.ratio_error)):
        if not change.sign_right or abs(change.ratio_error) > 0.05:
            print(f"# {change.what}: {change.before.name} -> {change.after.name}: published {change.published:+.1%}, "
                  f"predicted {change.predicted:+.1%}")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
