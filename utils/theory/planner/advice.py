"""What a plan says: the recommendation and its reason, what would fit where nothing does, and how it is written out."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from utils.theory.planner.held import held, most_tokens
from utils.theory.units import GB, format_seconds

if TYPE_CHECKING:
    from utils.theory.planner.ask import Ask
    from utils.theory.planner.plan import Plan, Row

_MOST_GPUS = 16_384
BINDS = {
    "memory": "memory of a GPU",
    "compute": "compute",
    "inside": "links inside a node",
    "across": "link between nodes",
}
HEAD = ("strategy", "memory of a GPU", "fits", "micro-batch", "a step", "tokens/s/GPU", "MFU", "waiting", "what binds")


def sentence(found: Plan) -> str:
    """The recommendation in one sentence with its reason."""
    best, ask = found.best, found.ask
    if best is None:
        least = min(found.rows, key=lambda row: row.memory)
        return (
            f"Nothing fits: {least.title}, which holds least, needs {_gb(least.memory)} of the {_gb(ask.budget)} that "
            f"a GPU may use; {'; or '.join(found.would_fit) or 'no change of one thing alone would do'}."
        )
    take = f"Take {best.title}, micro-batches of {best.micro_batch}"
    take += f" ({best.accumulation} a step)" if best.accumulation > 1 else ""
    return f"{take}: {_reason(found, best)}; a step of {format_seconds(best.seconds)}, MFU {best.prediction.mfu:.0%}."


def _reason(found: Plan, best: Row) -> str:
    ddp = found.row("ddp")
    lacks = f"DDP lacks at least {_gb(ddp.over)} on each GPU"
    if best.strategy == "ddp":
        return "it fits, communicates once a step, and nothing that fits is more than 3% faster"
    if best.strategy == "hsdp":
        fsdp = found.row("fsdp")
        if not fsdp.fits:
            return f"{lacks}, and nothing else that fits is faster"
        parts, faster = fsdp.prediction.parts, fsdp.seconds / best.seconds - 1
        lost = (parts["waiting across"] + parts["contention"]) / fsdp.seconds
        return (
            f"{lacks if not ddp.fits else _why_not_ddp(ddp, best)}; FSDP loses {lost:.0%} of its step to collectives "
            f"across nodes, groups of {best.shard_size} keep the gathers near and are {faster:.0%} faster"
        )
    ahead = lacks if not ddp.fits else _why_not_ddp(ddp, best)
    if best.strategy == "fsdp":
        return f"{ahead}; sharding everything fits, and nothing that fits is more than 3% faster"
    shared = "the optimizer" if best.strategy == "zero1" else "optimizer and gradients"
    return f"{ahead}; sharding {shared} is enough, and no weights are gathered during a step's micro-batches"


def _why_not_ddp(ddp: Row, best: Row) -> str:
    """DDP fits, and yet is not taken: what makes it slower."""
    own, other = ddp.prediction.parts, best.prediction.parts
    slower = ddp.seconds - best.seconds
    said = f"DDP fits, but is {slower / best.seconds:.0%} slower"
    if own["optimizer"] - other["optimizer"] > slower / 2:
        return f"{said}, since each of its GPUs updates all weights"
    if ddp.prediction.exposed - best.prediction.exposed > slower / 2:
        return f"{said}, since its all-reduce outlasts the backward pass"
    if ddp.micro_batch < best.micro_batch:
        return f"{said}, since it leaves room for smaller micro-batches alone"
    return said


def what_would(ask: Ask) -> tuple[str, ...]:
    """Each of these alone would make the leanest strategy, full recomputation, one sequence at once, fit.

    The leanest is FSDP, of two GPUs sometimes ZeRO-2; one GPU alone has the strategy of DDP.
    """
    found = []
    model, budget = ask.model, ask.budget
    lean = ("ddp",) if ask.gpus == 1 else ("fsdp", "zero2")
    more = next(
        (
            gpus
            for gpus in (ask.gpus * 2**power for power in range(1, 15))
            if gpus <= _MOST_GPUS and held(model, "fsdp", gpus, "full", ask.sequence) <= budget
        ),
        None,
    )
    if more:
        found.append(f"FSDP with full recomputation on {more:,} GPUs would fit")
    tokens = max(most_tokens(model, each, ask.gpus, "full", budget) for each in lean) // 256 * 256
    if tokens:
        found.append(f"sequences of {tokens:,} tokens would fit on these")
    offloaded = min(held(model, each, ask.gpus, "full", ask.sequence) for each in lean)
    offloaded -= 8 * model.parameters / ask.gpus
    if offloaded <= budget:
        found.append("Adam's moments on the CPU (offload) would leave room enough")
    unit = _unit_that_fits(ask)
    if unit:
        found.append(unit)
    if not found:
        least = held(model, "fsdp", _MOST_GPUS, "full", ask.sequence)
        found.append(f"GPUs of at least {_gb(least / (1 - ask.reserve))} each would hold what cannot be sharded")
    return tuple(found)


def _unit_that_fits(ask: Ask) -> str:
    from utils.theory.planner.units import hybrid_jobs  # units ask the planner's questions too

    more = {"gpus_per_node": ask.gpus_per_node, "gpu": ask.gpu, "memory": ask.memory, "network": ask.network}
    jobs = hybrid_jobs(ask.model, ask.gpus, sequence=ask.sequence, reserve=ask.reserve, again="full", **more)
    fitting = [job for job in jobs if job.fits and job.job.unit > 1]
    if not fitting:
        return ""
    least = min(fitting, key=lambda each: (each.job.unit, each.job.pipeline))
    return f"units of TP {least.job.tensor} x PP {least.job.pipeline} would fit, data parallelism around them"


def cells(row: Row) -> tuple[str, ...]:
    """A row's cells, under `HEAD`."""
    step = row.prediction
    fit = f"yes, {_gb(-row.over)} free" if row.fits else f"no, lacks {_gb(row.over)}"
    return (
        row.title,
        _gb(row.memory),
        fit,
        f"{row.micro_batch} x {row.accumulation}",
        format_seconds(step.seconds),
        f"{step.per_gpu:,.0f}",
        f"{step.mfu:.0%}",
        f"{step.exposed / step.seconds:.0%}",
        BINDS[row.binds],
    )


def title(ask: Ask) -> str:
    """What was asked, in one line."""
    where = f"{ask.nodes:,} node{'s' if ask.nodes > 1 else ''} of {ask.gpus_per_node} x {ask.gpu.name}"
    return (
        f"{ask.name} on {where}, {ask.network:g} Gbit/s a node, {ask.global_batch:,} x {ask.sequence:,} tokens a step, "
        f"{_gb(ask.budget)} of a GPU to use"
    )


def text(found: Plan) -> str:
    """As plain text: question, table, recommendation."""
    table = [HEAD, *(cells(row) for row in found.rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEAD))]
    lines_ = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    return "\n".join([title(found.ask), *lines_, found.recommendation])


def html(found: Plan) -> str:
    """The same as a table that a notebook shows; the recommended row is marked in words and in bold."""
    head = "".join(f'<th scope="col">{each}</th>' for each in HEAD)
    body = ""
    for row in found.rows:
        first, *rest = cells(row)
        taken = row is found.best
        mark, bold = (" (recommended)", ' style="font-weight: bold"') if taken else ("", "")
        body += f'<tr{bold}><th scope="row">{escape(first + mark)}</th>'
        body += "".join(f"<td>{escape(cell)}</td>" for cell in rest) + "</tr>"
    said = f"<p>{escape(found.recommendation)}</p>"
    return f"<table><caption>{escape(title(found.ask))}</caption><tr>{head}</tr>{body}</table>{said}"


def as_json(found: Plan) -> dict[str, Any]:
    """Plain numbers and texts; sizes in bytes, times in seconds."""
    ask = found.ask
    return {
        "model": ask.name,
        "gpus": ask.gpus,
        "gpus_per_node": ask.gpus_per_node,
        "gpu": ask.gpu.name,
        "budget_bytes": ask.budget,
        "network_gigabits": ask.network,
        "sequence": ask.sequence,
        "global_batch": ask.global_batch,
        "recommendation": found.recommendation,
        "best": None if found.best is None else _row_json(found.best),
        "would_fit": list(found.would_fit),
        "rows": [_row_json(row) for row in found.rows],
    }


def _row_json(row: Row) -> dict[str, Any]:
    step = row.prediction
    return {
        "strategy": row.strategy,
        "shard_size": row.shard_size,
        "recomputation": row.again,
        "memory_bytes": row.memory,
        "fits": row.fits,
        "over_bytes": row.over,
        "micro_batch": row.micro_batch,
        "accumulation": row.accumulation,
        "step_seconds": step.seconds,
        "exposed_seconds": step.exposed,
        "tokens_per_second_per_gpu": step.per_gpu,
        "mfu": step.mfu,
        "binds": row.binds,
    }


def _gb(size: float) -> str:
    return f"{size / GB:,.1f} GB"
