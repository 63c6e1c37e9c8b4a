"""Lab 07, what data parallelism demands of the infrastructure: its exercises, in the order of the notebook."""

from utils.checks.exercise import Exercise
from utils.checks.lab07 import feeding, intervals, picking, resuming, sharing, straggling

EXERCISES = (
    Exercise(
        "07.straggler",
        "the rank that all others wait for",
        difficulty=2,
        minutes=12,
        parameters=("timeline",),
        hints=(
            "Four ranks meet in an all-reduce. When does it begin to move data, and which rank decides that? What does "
            "that rank's own waiting look like beside the others'?",
            "For each step put the `issued_at` of all ranks side by side. Who has the largest, how often, and how much "
            "larger is it than the largest of the others?",
            "Keep the operations with `len(op.ranks) == len(timeline)` that are all-reduces; `zip(*kept)` gives the "
            "steps. Count who comes last with `Counter(…).most_common(1)`; the seconds are a `statistics.median`.",
        ),
        verify=straggling.verify,
    ),
    Exercise(
        "07.train",
        "a job that goes on after a death as if nothing had happened",
        difficulty=4,
        minutes=25,
        parameters=("rank", "folder", "job", "steps", "every"),
        hints=(
            "Think of a rank that starts with nothing but the folder. What must it know, so that its next step comes "
            "out to the last bit? What of that is the same on all ranks, and what is each rank's own?",
            "One rank writes for all: before that it gathers from each its place in the data and its random state "
            "(`dist.all_gather_object`). What is written goes to a file of another name, and is moved when it is "
            "whole.",
            "State: the steps that are done, three `state_dict()` (model, optimizer, schedule), and for each rank "
            "`job.data.state_dict()` and `torch.get_rng_state()`. `os.replace(new, path)` moves it; a restart takes "
            "all of it back, and begins its `range` at the steps that are done.",
        ),
        verify=resuming.verify,
    ),
    Exercise(
        "07.checkpoint_every",
        "the interval that loses the least",
        difficulty=2,
        minutes=10,
        parameters=("gpus", "gpu_hours", "step_seconds", "write_seconds", "restart_seconds"),
        hints=(
            "How often does a job of that many GPUs fail, if any one of them stops it? Which of the three losses grow "
            "with the interval, which shrink, and which do not care?",
            "With T seconds of work between checkpoints and M between failures, writing takes C/T and what is done "
            "again T/2M of the time. Set the derivative to 0, or try all numbers of steps.",
            "The smallest sum is at T = sqrt(2 C M), Young's interval. Divide by the step, take a whole number, 1 at "
            "least. The restart adds R/M to what is lost, and nothing to the choice.",
        ),
        verify=intervals.verify,
    ),
    Exercise(
        "07.pick_algorithm",
        "ring or tree, over nodes",
        difficulty=3,
        minutes=10,
        parameters=("total_bytes", "nodes", "per_node", "inside", "across", "goodput"),
        hints=(
            "Follow one piece of a ring's buffer around twice: how many of its steps stay in a node, how many cross? "
            "Then follow a piece up the tree and down again.",
            "Two sums, each of three parts: messages inside times `inside`, messages across times `across`, bytes over "
            "`goodput`. The card has all six numbers.",
            "Ring: 2 (N - R) inside, 2 (R - 1) across, 2 (N - 1)/N S bytes. Tree: 2 (G - 1) inside, twice "
            "`(nodes - 1).bit_length()` across, 2 S bytes at 0.92 of `goodput`.",
        ),
        verify=picking.verify,
    ),
    Exercise(
        "07.my_shards",
        "who reads which file",
        difficulty=2,
        minutes=10,
        parameters=("shards", "epoch", "rank", "world_size", "worker", "workers"),
        hints=(
            "How many processes read in all? If all of them knew one order of all shards, how could each find its own "
            "part without a word to the others?",
            "All shuffle alike: `random.Random(epoch)` is the same everywhere. Cut the order to a multiple of the "
            "number of readers, and take every so many-th.",
            "The readers are numbered `rank * workers + worker`. `random.Random(epoch).sample(…)` gives a new list and "
            "leaves the old one alone; `part[first::step]` takes every `step`-th.",
        ),
        verify=sharing.verify,
    ),
    Exercise(
        "07.feed",
        "the bytes per second of a store",
        difficulty=1,
        minutes=8,
        parameters=("parameters", "tokens", "batch", "gpus", "flops", "sample_bytes", "store"),
        hints=(
            "How long does one GPU compute on its batch? How many bytes have all GPUs read by then?",
            "A step of a GPU is 6Ψ operations for each token of its batch, over `flops`. Bytes are those of all GPUs. "
            "If batches are read ahead, what is a step when loading takes longer?",
            "Rate: bytes of a step over the seconds of a step. The step on the store: `max` of the compute and of the "
            "bytes over `store`.",
        ),
        verify=feeding.verify,
    ),
)
