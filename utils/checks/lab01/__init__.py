"""Lab 01, plain data parallelism: its exercises, in the order of the notebook."""

from utils.checks.exercise import Exercise
from utils.checks.lab01 import accumulating, averaging, broadcasting, script, sharding, stepping, uneven

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
    Exercise(
        "01.train_step",
        "one step of training, the same on every rank",
        difficulty=2,
        minutes=10,
        parameters=("model", "optimizer", "loss_fn", "inputs", "targets"),
        hints=(
            "Start from the loop of one process: forget the old gradients, forward, backward, step. Between which two "
            "must the ranks agree?",
            "`average_gradients(model)` belongs after `backward`, when the gradients exist, and before "
            "`optimizer.step()`, which uses them. Nothing else communicates gradients: `step` does not.",
            "The loss is each rank's own. For the mean over all ranks, all-reduce a copy, `loss.detach().clone()`, and "
            "divide by `dist.get_world_size()`; `.item()` makes it a number.",
        ),
        verify=stepping.verify,
    ),
    Exercise(
        "01.accumulate",
        "k micro-batches, one communication, one step",
        difficulty=3,
        minutes=10,
        parameters=("model", "optimizer", "loss_fn", "micro_batches"),
        hints=(
            "`backward` adds to `.grad`. So k backwards leave a sum over k micro-batches, on each rank, without any "
            "communication.",
            "A mean is wanted: divide each loss by k before its backward. `zero_grad` comes once, before the loop.",
            "After the loop the gradients are each rank's own mean over k micro-batches. Then, and only then, "
            "`average_gradients(model)` and `optimizer.step()`.",
        ),
        verify=accumulating.verify,
    ),
    Exercise(
        "01.uneven_batches",
        "an epoch in which ranks have different numbers of samples",
        difficulty=4,
        minutes=15,
        parameters=("model", "optimizer", "loss_fn", "batches"),
        hints=(
            "A collective needs every rank. How does a rank that has no batch left know that others still have one? "
            "And what can it contribute to a sum without changing it?",
            "First agree on the number of steps: an all-reduce of `len(batches)` with `op=dist.ReduceOp.MAX`. A rank "
            "without a batch contributes gradients of zero and a count of zero.",
            "Let each rank's loss be a sum over its samples (the mean times `len(inputs)`), all-reduce the gradients "
            "and the count, and divide the gradients by the count. A gradient that is None becomes "
            "`torch.zeros_like(p)` before the all-reduce, unless the parameter is frozen.",
        ),
        verify=uneven.verify,
    ),
    Exercise(
        "01.ddp_accumulate",
        "the same accumulation with torch's DistributedDataParallel",
        difficulty=2,
        minutes=8,
        parameters=("ddp_model", "optimizer", "loss_fn", "micro_batches"),
        hints=(
            "DDP all-reduces during every backward. Inside `with ddp_model.no_sync():` it does not.",
            "DDP decides in the *forward* whether the next backward will communicate. So forward and backward of a "
            "micro-batch belong under the same `with`.",
            "All micro-batches but the last under `no_sync`, the last one outside it: "
            "`with ddp_model.no_sync() if more_to_come else nullcontext():`.",
        ),
        verify=accumulating.verify_ddp,
    ),
    Exercise(
        "01.script",
        "the loop as a program of its own",
        difficulty=3,
        minutes=10,
        parameters=(),
        hints=(
            "You have written every part already: start from rank 0's weights, then five steps of forward, backward, "
            "average, step. Here they stand in one file, without functions if you like.",
            "Parameters: `dist.broadcast(p.detach(), src=0)`. Gradients: `dist.all_reduce(p.grad)`, then divide by "
            "`world_size`. The loss to print: all-reduce a detached copy and divide as well.",
            "Every rank must reach every collective; only printing and `torch.save(model.state_dict(), sys.argv[1])` "
            "stand under `if rank == 0:`.",
        ),
        verify=script.verify,
        wants="text",
    ),
)
