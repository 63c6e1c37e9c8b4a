"""Lab 04, ZeRO-1, 2, 3: its exercises, in the order of the notebook."""

from utils.checks.exercise import Exercise
from utils.checks.lab04 import (
    clipping,
    freeing,
    gathering,
    loading,
    mixing,
    partitioning,
    saving,
    stepping,
)

EXERCISES = (
    Exercise(
        "04.mixed_precision",
        "bf16 weights, fp32 master weights: 16 bytes a parameter",
        difficulty=2,
        minutes=10,
        parameters=("model", "make_optimizer"),
        hints=(
            "A bf16 number has 8 significant bits: added to 1, a step of 0.001 is rounded away. Which copy of the "
            "weights must the optimizer work on, so that small steps add up?",
            "Before `step`: for each trainable parameter a master, `p.detach().float()`, and one optimizer on all "
            "masters. In `step`: each master gets its parameter's gradient in fp32, the optimizer steps, and each "
            "parameter gets its master's values; `copy_` rounds.",
            "`master.grad, p.grad = p.grad.float(), None` hands a gradient over. After `optimizer.step()` call "
            "`optimizer.zero_grad()`, or the fp32 gradients stay; write with `p.data.copy_(master)`. Never make the "
            "masters anew from the parameters: these are rounded.",
        ),
        verify=mixing.verify,
    ),
    Exercise(
        "04.partition",
        "a flat buffer in N equal slices",
        difficulty=2,
        minutes=10,
        parameters=("parameters", "rank", "world_size"),
        hints=(
            "Slices of equal length need a length that N divides. How long is a slice if it is rounded up, and how "
            "long are N of them?",
            "`flat` is `world_size` slices of zeros. Fill it from the front: the numbers of the first parameter, of "
            "the second, and so on. What is left at the end is padding. Each parameter's `.data` then becomes the part "
            "of `flat` that holds its numbers, in its own shape.",
            "`length = -(-numel // world_size)` rounds up. `part = flat[begin : begin + p.numel()]` is a view: "
            "`part.copy_(p.detach().flatten())`, then `p.data = part.view_as(p)`. Slice r is "
            "`flat[r * length : (r + 1) * length]`.",
        ),
        verify=partitioning.verify,
    ),
    Exercise(
        "04.zero1",
        "ZeRO-1: every rank steps its own slice",
        difficulty=3,
        minutes=15,
        parameters=("buckets", "make_optimizer"),
        hints=(
            "Of each bucket a rank steps one slice. So it needs the mean gradient of that slice alone, and the other "
            "ranks need its new weights. Which two collectives do that?",
            "Before `step`: `partition` each bucket, a master for each slice (`mine.float()`), one optimizer on the "
            "masters. In `step`, for each bucket: reduce-scatter its gradients, flat, into a tensor like `mine`. Then "
            "`optimizer.step()`. Then copy each master into its slice and all-gather the flat weights.",
            "`reduce_scatter_single(gradient, take_gradients(bucket, flat), op=dist.ReduceOp.AVG)`, then "
            "`master.grad = gradient.float()`. After the step `mine.copy_(master)` and "
            "`all_gather_single(flat, mine)`: the parameters are views of `flat`, so they are new at once. "
            "`optimizer.zero_grad()` drops the slices' gradients.",
        ),
        verify=stepping.verify,
    ),
    Exercise(
        "04.zero2",
        "ZeRO-2: gradients freed as soon as their bucket is reduced",
        difficulty=4,
        minutes=20,
        parameters=("buckets", "make_optimizer"),
        hints=(
            "After reduce-scatter a rank needs its slice of a bucket's gradients and nothing else of it. When is a "
            "bucket's last gradient ready, and who is told?",
            "Keep one gradient slice for each bucket, zeros at first. Register a hook on every parameter, as in lab 02 "
            "(`register_post_accumulate_grad_hook`); when every parameter of its bucket has a gradient, reduce-scatter "
            "the bucket and *add* the result to the slice: with several micro-batches it is called several times "
            "before a step.",
            "A bucket is full when no `.grad` of it is None: look at `all(…)` of them in the hook. `take_gradients` "
            "sets them to None, so that they are freed and the bucket can fill again. `step` first reduces what never "
            "became full, then does what ZeRO-1's does with the slices, and sets these to zero.",
        ),
        verify=freeing.verify,
    ),
    Exercise(
        "04.zero3",
        "ZeRO-3: weights gathered for each layer, and freed",
        difficulty=5,
        minutes=25,
        parameters=("layers", "make_optimizer"),
        hints=(
            "A layer's whole weights are needed twice: in its forward and in its backward. In between a rank holds its "
            "slice alone. Which four moments are these, and which hooks are called then?",
            "Take ZeRO-2 with one bucket for each layer. Keep a *copy* of the slice, and empty the flat buffer: "
            "`flat.untyped_storage().resize_(0)` gives its memory back, although the parameters are still views of "
            "it. To gather, give the storage its size back and all-gather into `flat`.",
            "`register_forward_pre_hook(gather)`, `register_forward_hook(free)`, "
            "`register_full_backward_pre_hook(gather)` on the layer; when all gradients of the layer are ready, "
            "reduce-scatter them, add to the slice, and free the weights. `step` ends by copying the masters into the "
            "slices: nothing is gathered before the next forward.",
        ),
        verify=gathering.verify,
    ),
    Exercise(
        "04.clip_gradients",
        "clip by the norm over all slices",
        difficulty=2,
        minutes=10,
        parameters=("optimizer", "max_norm"),
        hints=(
            "The global norm is the root of the sum of the squares of *all* numbers. Each rank knows the squares of "
            "its own slices. What must be summed over the ranks, and before or after the root?",
            "`optimizer.register_step_pre_hook(clip)` calls `clip(optimizer, arguments, named)` at the beginning of "
            "every `optimizer.step()`. In it sum the squares of all gradients of the optimizer into one number, "
            "all-reduce that, and take the root.",
            "If the norm is above `max_norm`, multiply every gradient in place by `max_norm / norm`; else leave them. "
            "All ranks find the same norm, so that they agree. A rank whose gradients are all None contributes 0, and "
            "takes part.",
        ),
        verify=clipping.verify,
    ),
    Exercise(
        "04.save",
        "a checkpoint that does not depend on N",
        difficulty=3,
        minutes=10,
        parameters=("buckets", "optimizer"),
        hints=(
            "Written as slices, a checkpoint fits one N alone. What of a bucket does not depend on N? And which "
            "tensors are needed to go on as if nothing had happened?",
            "`optimizer.param_groups[0]['params'][i]` is this rank's slice of bucket i, and `optimizer.state` of it is "
            "a dict: each tensor of the slice's shape is a moment, and sliced like it. All-gather the slices, and cut "
            "the padding off.",
            "`whole = slice.new_empty(world_size * slice.numel())`, `all_gather_single(whole, slice)`, then "
            "`whole[:numel].clone()` with the number of elements of the bucket's parameters. Every rank must call "
            "this for every tensor in the same order. A step counter is not sliced: clone it.",
        ),
        verify=saving.verify,
    ),
    Exercise(
        "04.load",
        "go on with another number of ranks",
        difficulty=2,
        minutes=10,
        parameters=("checkpoint", "buckets", "optimizer"),
        hints=(
            "Now N is another one, and the optimizer is fresh: its slices have this N's length, its state is empty. "
            "Which three things does a rank need from the checkpoint?",
            "For each bucket: pad its numbers to N times the length of the optimizer's slice, and take this rank's "
            "slice of them, for the master and for each moment. And the parameters get all numbers, whole.",
            "`padded = whole.new_zeros(world_size * slice.numel()); padded[: whole.numel()] = whole`, then "
            "`padded.chunk(world_size)[rank].clone()`. Set `optimizer.state[slice] = {name: …}`; a step counter is "
            "cloned. Write into the slice and into each `p.data` with `copy_`: they are views of one flat buffer.",
        ),
        verify=loading.verify,
    ),
)
