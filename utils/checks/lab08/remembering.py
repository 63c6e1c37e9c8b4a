"""08.predict_memory: the bytes of states on a rank after backward, by strategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from utils.checks.lab08.job import STRATEGIES, Job
from utils.checks.lab08.laws import JOBS, memory
from utils.checks.lab08.named import apart, near, plain_number, raise_named
from utils.checks.ranks import Mark, run_cases
from utils.checks.shut import answers_to
from utils.checks.verdict import Mistake
from utils.theory.units import MB

Rule = Callable[[Job, str], float]


def _states(job: Job, strategy: str, *, whole: int, shared: int, among: int) -> float:
    """Bytes: `whole` of each number on every rank, `shared` of it among so many."""
    psi = sum(job.parameters)
    return whole * psi + shared * psi / among


def _like(**changed: tuple[int, int, str]) -> Rule:
    """The law, but of some strategies (bytes whole, bytes shared, among whom: "ranks" or "per_node")."""

    def rule(job: Job, strategy: str) -> float:
        if strategy not in changed:
            return memory(job, strategy)
        whole, shared, among = changed[strategy]
        return _states(job, strategy, whole=whole, shared=shared, among=getattr(job, among))

    return rule


def _among(job: Job, strategy: str, whole: tuple[str, ...]) -> int:
    """How many ranks share something out; 1 under strategies that keep it whole."""
    return 1 if strategy in whole else job.per_node if strategy == "hsdp" else job.ranks


# A rule that somebody may have followed -> what it leaves out.
WRONG: tuple[tuple[Rule, str], ...] = (
    (
        _like(zero1=(4, 12, "ranks")),
        "ZeRO-1 is counted with 4Ψ + 12Ψ/N, as with bf16 weights and masters; or gradients are shared out: that is "
        "ZeRO-2. In fp32 weights and gradients are 4 + 4 bytes, whole on every rank, and the moments 8/N.",
    ),
    (
        _like(hsdp=(0, 16, "ranks")),
        "HSDP's states are shared out among the ranks of a node, 16Ψ/G, not among all N: every node holds a copy.",
    ),
    (
        _like(hsdp=(0, 16, "nodes")),
        "HSDP is shared out among `nodes` ranks; a node has `per_node`.",
    ),
    (
        _like(fsdp=(4, 12, "ranks"), hsdp=(4, 12, "per_node")),
        "the weights are counted whole under FSDP and HSDP. Whole they are only while a unit computes; at rest a rank "
        "holds its shard.",
    ),
    (
        _like(fsdp=(0, 16, "per_node")),
        "FSDP's states are shared out among all N ranks, not among those of a node: that is HSDP.",
    ),
    (
        lambda job, s: memory(job, s) - 4 * sum(job.parameters) / _among(job, s, whole=("ddp", "zero1")),
        "the gradients are left out: after backward they are there, 4 bytes for each number.",
    ),
    (
        lambda job, s: memory(job, s) - 8 * sum(job.parameters) / _among(job, s, whole=("ddp",)),
        "Adam's two moments are left out: 8 bytes for each number.",
    ),
    (
        lambda job, s: memory(job, s) - 4 * sum(job.parameters) / _among(job, s, whole=("ddp",)),
        "Adam keeps two moments of each number, 8 bytes; one is counted.",
    ),
    (
        lambda job, s: 16 * sum(job.parameters),
        "every strategy is counted as DDP, 16 bytes for each number on every rank.",
    ),
    (
        lambda job, s: 16 * sum(job.parameters) / job.ranks,
        "every strategy is counted as FSDP, 16Ψ/N: DDP shares nothing out, ZeRO-1 the moments alone.",
    ),
    (lambda job, s: memory(job, s) / 4, "numbers are returned, not bytes: an fp32 number has 4."),
    (lambda job, s: memory(job, s) / MB, "the answer is in MB; return bytes."),
    (lambda job, s: memory(job, s) * job.ranks, "the answer is that of all ranks together; return that of one."),
)  # fmt: skip


def verify(answer: Any) -> str:
    returned = run_cases(answer, {"": _observe}, 1)[""][0].value
    judge([plain_number(each, "the bytes that a rank holds", "a rank holds more than 0 bytes") for each in returned])
    return (
        f"the states of DDP, ZeRO-1, FSDP and HSDP in fp32 with Adam, for {len(JOBS)} clusters: one node, one rank on "
        "each, odd numbers of nodes, 16 nodes of 8."
    )


def _observe(answer: Any, mark: Mark) -> list[Any]:
    return answers_to(((job, strategy) for job in JOBS for strategy in STRATEGIES), answer)


def judge(got: list[float]) -> None:
    """In the notebook: raise Mistake, naming the rule that was followed, or the first number that is wrong."""
    asked = [(job, strategy) for job in JOBS for strategy in STRATEGIES]
    raise_named(got, [([rule(*each) for each in asked], words) for rule, words in WRONG])
    for (job, strategy), found in zip(asked, got, strict=True):
        wanted = memory(job, strategy)
        if not near(found, wanted):
            psi = sum(job.parameters)
            yours, right = apart(found / psi, wanted / psi)
            raise Mistake(
                f"{strategy} on {job.words}: your answer is {yours} bytes for each number, and it holds {right}."
            )
