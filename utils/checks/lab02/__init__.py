"""Lab 02, buckets and overlap: its exercises, in the order of the notebook."""

from utils.checks.exercise import Exercise
from utils.checks.lab02 import accumulating, assigning, choosing, filling, overlapping

EXERCISES = (
    Exercise(
        "02.assign_buckets",
        "which gradients share a bucket",
        difficulty=2,
        minutes=10,
        parameters=("sizes", "cap"),
        hints=(
            "Backward finishes the last layer's gradients first. Which position in `sizes` goes into the first bucket "
            "first, then?",
            "Walk through the positions backwards and add each to the bucket being filled. After adding, look: has "
            "its size reached the cap? Then it is full, and the next position begins a new one.",
            "`for i in reversed(range(len(sizes)))`: append `i`, add `sizes[i]`; if the sum is `>= cap`, move the "
            "bucket to the result and begin an empty one. After the loop the last bucket, if anything is in it, "
            "belongs to the result too.",
        ),
        verify=assigning.verify,
    ),
    Exercise(
        "02.when_full",
        "hooks that tell when a bucket is full",
        difficulty=3,
        minutes=15,
        parameters=("buckets", "act"),
        hints=(
            "A hook knows its parameter, not which others are still missing. Keep, for each bucket, how many of its "
            "gradients are not ready yet.",
            "`parameter.register_post_accumulate_grad_hook(hook)` calls `hook(parameter)` when its gradient is ready. "
            "Make one hook for each parameter, which knows its bucket's number, for instance with "
            "`functools.partial`.",
            "In the hook count down what its bucket misses. Keep also `turn`, the number of the bucket that is to go "
            "next: as long as that one misses nothing, act for it and move the turn on, but not past the last bucket. "
            "So a bucket that is full early waits for those before it.",
        ),
        verify=filling.verify,
    ),
    Exercise(
        "02.overlap",
        "all-reduce each bucket while backward goes on",
        difficulty=4,
        minutes=25,
        parameters=("buckets",),
        hints=(
            "Two things happen at two times. When a bucket is full, its gradients are put into one tensor, and an "
            "all-reduce of it is begun. When backward is over, somebody waits, and puts the results back.",
            "Let `send(number)` flatten the bucket with `torch.cat`, begin `dist.all_reduce(flat, async_op=True)`, "
            "and keep the flat tensor and what it returned. `when_full(buckets, send)` calls it at the right moments, "
            "and `finish` finds what was kept.",
            "In `finish`: remove the hooks. Then, bucket by bucket, wait for its all-reduce, divide the flat tensor "
            "by the number of ranks, cut it with `split` into parts of `p.numel()` numbers, and copy each part, "
            "brought into shape by `view_as`, into its `p.grad`.",
        ),
        verify=overlapping.verify,
    ),
    Exercise(
        "02.overlap_unused",
        "the same with parameters that get no gradient",
        difficulty=4,
        minutes=15,
        parameters=("buckets",),
        hints=(
            "A parameter that the forward did not use never calls its hook. Its bucket never fills, and in order, "
            "neither do those after it. Who knows that backward is over, and that no more will come?",
            "Begin `finish` by sending, in order, every bucket that was not sent yet. All ranks then issue the same "
            "all-reduces in the same order, whichever parameters each of them used.",
            "In `send`, a `p.grad` that is None becomes `torch.zeros_like(p)`: zeros change no sum. Since buckets go "
            "out in order, the length of your list of what was sent is the number of the first bucket that `finish` "
            "must still send.",
        ),
        verify=overlapping.verify_unused,
    ),
    Exercise(
        "02.accumulate",
        "k micro-batches, and overlap in the last one",
        difficulty=2,
        minutes=10,
        parameters=("model", "optimizer", "loss_fn", "micro_batches", "buckets"),
        hints=(
            "`backward` adds to `.grad`. Which of the k backwards leaves the sum of all of them behind it, ready to "
            "be sent?",
            "`overlap(buckets)` concerns the backward that follows. So call it before the last one only: that is what "
            "`no_sync` does in torch's DDP, the other way round.",
            "Count the micro-batches in the loop. In the last one, between forward and backward, call `overlap` and "
            "keep what it returns; call that after the loop and before `optimizer.step()`. Each loss is divided by k.",
        ),
        verify=accumulating.verify,
    ),
    Exercise(
        "02.best_bucket_size",
        "the bucket size for a link, predicted",
        difficulty=2,
        minutes=15,
        parameters=("layers", "world_size", "link", "sizes"),
        hints=(
            "Small buckets begin early but pay the latency often; large ones pay it seldom but begin late. Which wins "
            "depends on the link, and a simulation tells.",
            "`simulate_step` takes the layers, the number of ranks, the link, and `bucket_bytes=` the size at which "
            "buckets close. Its result's `.seconds` is the predicted time of the step.",
            "`min` takes a `key`: a function that gives, for each size, the number to compare. Here that is the time "
            "of the simulated step.",
        ),
        verify=choosing.verify,
    ),
)
