"""A dry run beside the laws: predicted, traced, difference."""

from __future__ import annotations

from dataclasses import dataclass

from utils.runtime.dry_run.result import DryRun
from utils.theory.allocations import fsdp2_shard
from utils.theory.architecture import Architecture
from utils.theory.memory import ModelStates, model_states
from utils.theory.optimizer_memory import all_step_counters
from utils.theory.units import GB


@dataclass(frozen=True)
class Row:
    """One line. where: "optimizer step", "peak" or "collectives". unit: "bytes" or "times"."""

    where: str
    what: str
    predicted: float
    traced: float
    unit: str = "bytes"

    @property
    def difference(self) -> float:
        """Traced less predicted."""
        return self.traced - self.predicted

    @property
    def share(self) -> float:
        """The difference as a share of what was predicted; 0 where both are 0."""
        return self.difference / self.predicted if self.predicted else float(bool(self.difference))


def padded_parameters(model: Architecture, ranks: int) -> int:
    """Parameters with the rows by which FSDP2 fills up each tensor until `ranks` divides it."""
    return ranks * (fsdp2_shard(model.root_tensors, ranks) + model.layers * fsdp2_shard(model.layer_tensors, ranks))


def rows(run: DryRun) -> tuple[Row, ...]:
    """Model states at the optimizer's step, parts at the peak, collectives.

    States: `theory.memory.model_states` of the padded parameters, and a line for each tensor's step counter. Parts at
    the peak: each at its own peak, the predicted one and the traced one. Collectives: `theory.traffic.step_bytes`.
    In a shard group of one rank nothing is gathered or scattered; the law counts the copy of the gradients that is made
    all the same as a buffer, the trace, where no collective names it, as work.
    """
    request, states, step = run.request, predicted_states(run), run.states
    counters, most, top = all_step_counters(request.model), run.predicted.peak_moment, run.peak.largest
    found = [
        Row("optimizer step", "sharded parameters", states.weights, step.weights),
        Row("optimizer step", "sharded gradients", states.gradients, step.gradients),
        Row("optimizer step", "Adam's moments", states.optimizer, step.optimizer - run.step_counters),
        Row("optimizer step", "Adam's step counters", counters, run.step_counters),
        Row("peak", "gathered parameters", most.gathered, top.gathered),
        Row("peak", "communication buffers", most.buffers, top.buffers),
        Row(
            "peak",
            "activations, logits, work",
            most.activations + most.logits + most.working,
            top.activations + top.logits + top.working,
        ),
        Row("peak", "in all", run.predicted.total, run.total),
    ]
    units = len(request.model.units)
    for kind, times in (("all_gather", 2 * units - 1), ("reduce_scatter", units), ("all_reduce", units)):
        planned = [each for each in run.traffic.collectives if each.kind == kind]
        if planned:
            calls = [call for call in run.calls if call.kind == kind]
            size = sum(each.total_bytes * each.times for each in planned)
            found.append(Row("collectives", kind, times, sum(call.times for call in calls), "times"))
            found.append(Row("collectives", kind, size, sum(call.total_bytes * call.times for call in calls)))
    return tuple(found)


def predicted_states(run: DryRun) -> ModelStates:
    """Of the rank with most, tensors padded one by one."""
    request = run.request
    ranks = request.shard_size
    parameters = padded_parameters(request.model, ranks)
    size = request.shard_size if request.strategy == "hsdp" else None
    return model_states(parameters, request.world_size, request.strategy, size, "fsdp2")


def written(run: DryRun) -> str:
    """The table as text; the same on every run."""
    lines = [run.request.title]
    where = ""
    for row in run.table:
        if row.where != where:
            where = row.where
            lines += ["", f"{_heading(run, where):<44} {'predicted':>18} {'traced':>18} {'difference':>18}"]
        lines.append(
            f"{row.what + (': S in all' if where == 'collectives' and row.unit == 'bytes' else ''):<44} "
            f"{_number(row.predicted, row.unit):>18} {_number(row.traced, row.unit):>18} {_difference(row):>18}"
        )
    padding = padded_parameters(run.request.model, run.request.shard_size) - run.request.model.parameters
    lines += ["", f"predicted to be largest: {run.predicted.peak_moment.name}; traced: {run.peak.label}"]
    lines.append(f"model states {run.state_bytes / GB:,.3f} GB, at most {run.total / GB:,.3f} GB")
    if padding:
        lines.append(f"shards are padded by {padding:,} elements in all, as FSDP2 cuts tensor by tensor")
    return "\n".join(lines)


def _heading(run: DryRun, where: str) -> str:
    return {
        "optimizer step": "model states, on one rank",
        "peak": "at the largest moment, on one rank",
        "collectives": f"collectives of one step, {run.traffic.strategy}",
    }[where]


def _number(value: float, unit: str) -> str:
    return f"{value:,.0f}" if unit == "times" else f"{value:,.0f} B"


def _difference(row: Row) -> str:
    if not row.difference:
        return "none"
    return f"{row.difference:+,.0f}" if row.unit == "times" else f"{row.share:+.3%}"
