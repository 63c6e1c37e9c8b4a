"""Lab 08, the capstone: plan, predict, run, compare. Its exercises, in the order of the notebook."""

from utils.checks.exercise import Exercise
from utils.checks.lab08 import diagnosing, recommending, remembering, sending, timing

EXERCISES = (
    Exercise(
        "08.predict_memory",
        "bytes of states on a rank",
        difficulty=2,
        minutes=10,
        parameters=("job", "strategy"),
        hints=(
            "For each number there are weights, a gradient and Adam's two moments. Which of these does a strategy "
            "share out, and among how many ranks?",
            "DDP shares nothing, ZeRO-1 the moments, FSDP all of them among N ranks, HSDP all of them among the ranks "
            "of a node. In fp32 there are no masters beside the weights.",
            "`model_states(Ψ, N, strategy, G, recipe='fp32').total`, with None in the place of G for all but HSDP; Ψ "
            "is the sum of `job.parameters`. Or by hand: 16Ψ, 8Ψ + 8Ψ/N, 16Ψ/N, 16Ψ/G.",
        ),
        verify=remembering.verify,
    ),
    Exercise(
        "08.predict_bytes",
        "what a rank sends, and a node",
        difficulty=2,
        minutes=15,
        parameters=("job", "strategy"),
        hints=(
            "List the collectives of a step for each strategy. Among how many ranks does each go around, and does its "
            "ring leave the node?",
            "A pass of a ring among n ranks is (n - 1)/n of what goes around; an all-reduce is two passes. A ring "
            "through all ranks leaves each node once. Under HSDP only all-reduces of S/G leave a node, G of them.",
            "`step_bytes(Ψ, strategy, N, G, R, bytes_per_element=4)` has `.per_rank` and `.across`, with None in the "
            "place of G for all but HSDP. HSDP by hand: 3 (G - 1)/G S + 2 (R - 1)/R S/G, and 2 (R - 1)/R S across.",
        ),
        verify=sending.verify,
    ),
    Exercise(
        "08.predict_seconds",
        "the time of a step",
        difficulty=4,
        minutes=30,
        parameters=("job", "strategy"),
        hints=(
            "Three questions for each strategy: which collectives, over which link, and does anything compute "
            "meanwhile? Write the time of one collective as a function first.",
            "A collective of p passes among n ranks: p ((n - 1)/n bytes/rate + (n - 1) latency). Where everybody waits "
            "the times add up. DDP: walk backward from unit to unit, and keep when the link is done with the buckets "
            "so far.",
            "DDP: `ready = done = sum(job.forward)`; for each unit from the last: `ready += 2 * t`, then `done = "
            "max(done, ready) + all_reduce(size)`. HSDP's all-reduces across: 2 (R - 1)/R size over `job.across`, and "
            "2 (R - 1) latencies.",
        ),
        verify=timing.verify,
    ),
    Exercise(
        "08.recommend",
        "the strategy for a memory and a link",
        difficulty=2,
        minutes=15,
        parameters=("job", "memory"),
        hints=(
            "Two questions in order: what fits, and which of that is fast? When are two predictions so close that they "
            "do not tell the two apart?",
            "Keep the strategies with `predict_memory(job, s) <= memory`. Find the least `predict_seconds` among them. "
            "Return the first that is within 5 % of it.",
            "`next((s for s in fitting if predict_seconds(job, s) <= 1.05 * least), None)`, with `min(…, default=0)` "
            "for the least: nothing may fit.",
        ),
        verify=recommending.verify,
    ),
    Exercise(
        "08.diagnose",
        "the worst prediction, and why",
        difficulty=3,
        minutes=20,
        parameters=("predicted", "measured"),
        hints=(
            "When is a prediction worse than another: by seconds, or by their share of the step? And of a step that "
            "took longer, which of its parts took longer?",
            "Take the strategy with the largest |measured - predicted|/measured of the seconds. Split its error in "
            "two: of `communicating`, and of `alone`. The part that changed by more seconds is the cause.",
            "If |change of `alone`| ≥ |change of `communicating`|: 'alone'. Else 'bytes' if `across` differs by more "
            "than 5 % of what was predicted, else 'link'.",
        ),
        verify=diagnosing.verify,
    ),
)
