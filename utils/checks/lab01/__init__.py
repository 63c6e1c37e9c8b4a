"""Lab 01, plain data parallelism: its exercises, in the order of the notebook."""

from utils.checks.exercise import Exercise
from utils.checks.lab01 import averaging, broadcasting, sharding

EXERCISES = (
    Exercise(
        "01.shard_indices",
        "deal the samples of an epoch to the ranks",
        difficulty=2,
        minutes=8,
        parameters=("num_samples", "rank", "world_size", "epoch"),
        hints=(
            "Every rank runs this function for itself, without asking the others. So all must draw the same order of "
            "all samples, and each takes its own part of it.",
            "A `torch.Generator` seeded with the epoch gives the same order on every rank and another one each epoch; "
            "`torch.randperm(n, generator=...)` draws it.",
            "Rank r takes places r, r + N, r + 2N, ... of the order: `order[rank::world_size]`. This loses no sample "
            "when N does not divide their number, and gives an empty list when there are fewer samples than ranks.",
        ),
        verify=sharding.verify,
    ),
    Exercise(
        "01.broadcast_model",
        "start every rank from rank 0's weights and buffers",
        difficulty=1,
        minutes=6,
        parameters=("model",),
        hints=(
            "What decides what a model computes? Its parameters, also the frozen ones, and its buffers.",
            "`dist.broadcast(tensor, src=0)` writes rank 0's numbers into every other rank's tensor. Every rank calls "
            "it, with the same `src`, in the same order.",
            "Loop over `[*model.parameters(), *model.buffers()]` and broadcast each one's `.detach()`, which shares "
            "its memory and is not watched by autograd.",
        ),
        verify=broadcasting.verify,
    ),
    Exercise(
        "01.average_gradients",
        "replace each rank's gradients by their mean over the ranks",
        difficulty=2,
        minutes=8,
        parameters=("model",),
        hints=(
            "Each rank's gradient is the mean over its own samples. With equal shares, the mean of these means is the "
            "gradient of the whole batch.",
            "`dist.all_reduce(tensor)` leaves the sum over the ranks in every rank's tensor. A parameter that is "
            "frozen, or that the forward did not use, has `grad is None`: pass over it.",
            "For each parameter with a gradient: `dist.all_reduce(p.grad)`, then `p.grad /= dist.get_world_size()`.",
        ),
        verify=averaging.verify,
    ),
)
