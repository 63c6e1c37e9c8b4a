"""Lab 05, a small FSDP from hooks: its exercises, in the order of the notebook."""

from utils.checks.exercise import Exercise
from utils.checks.lab05 import inference, sharding, training

EXERCISES = (
    Exercise(
        "05.shard",
        "a unit's shard, and a flat buffer without memory",
        difficulty=2,
        minutes=10,
        parameters=("parameters", "rank", "world_size"),
        hints=(
            "Of the parameters nothing may be left but this rank's slice. Yet later all numbers are to appear in the "
            "parameters at once, when a collective writes into `flat`. What must the parameters be?",
            "Fill a padded `flat` as in lab 04, and make each `p.data` a view of its part. Then copy this rank's "
            "slice, and take the memory away from under `flat`: the views stay, and are empty.",
            "`mine = flat[rank * length : (rank + 1) * length].clone()`, where `length = -(-numel // world_size)`. "
            "Last `flat.untyped_storage().resize_(0)`.",
        ),
        verify=sharding.verify,
    ),
    Exercise(
        "05.forward",
        "gather before a unit's forward, free after it",
        difficulty=3,
        minutes=15,
        parameters=("units",),
        hints=(
            "A unit's whole weights are needed while it computes, and at no other time. Who tells you that a module is "
            "about to compute, and who that it has?",
            "For each unit: `shard` its parameters; register a pre-hook that gives the storage of `flat` its size back "
            "and all-gathers into it, and a hook that takes the memory away. Both outlive this function: bind `flat` "
            "and `mine` of *this* unit to them.",
            "`flat.untyped_storage().resize_(flat.nbytes)`, then `all_gather_single(flat, mine)`. Bind with "
            "`partial(gather, number)`, and look `flats[number]` up; `unit.register_forward_pre_hook(…)` calls it with "
            "the module and its inputs, `register_forward_hook(…)` with the output too.",
        ),
        verify=inference.verify,
    ),
    Exercise(
        "05.fsdp",
        "gather again for backward, reduce-scatter, step the shards",
        difficulty=4,
        minutes=30,
        parameters=("units", "make_optimizer"),
        hints=(
            "Write down the life of one unit: gather, forward, free, gather, backward, reduce-scatter, free. Which "
            "hook is called at each of these? Which of them does a frozen unit not have?",
            "To `forward` come: masters and an optimizer on the shards of units that train; a pre-hook of backward "
            "that gathers; a hook on each trainable parameter that, when the unit's last gradient is there, "
            "reduce-scatters `take_gradients(…)`, adds the result to the unit's gradient shard, and frees the weights. "
            "A frozen unit is freed by `register_full_backward_hook`.",
            "`unit.register_full_backward_pre_hook(partial(gather, number))`; "
            "`p.register_post_accumulate_grad_hook(partial(ready, number))` with `all(p.grad is not None for p in "
            "group)`. `step` reduces what never became ready, frees everything, gives `gradient.float()` to the "
            "masters, steps, copies the masters into the shards, and zeroes the gradient shards.",
        ),
        verify=training.verify_fsdp,
    ),
    Exercise(
        "05.prefetch",
        "the next unit's gather goes on while this one computes",
        difficulty=4,
        minutes=20,
        parameters=("units", "make_optimizer"),
        hints=(
            "A gather that nobody waits for goes on while a unit computes. Which unit is next in forward, which in "
            "backward, and when at the latest must somebody wait?",
            "Split `gather` in two: `begin(number)` issues it and keeps its Work, `finish(number)` waits for that. "
            "Before a unit computes: begin it, if nobody has, finish it, then begin the next one. The last unit of a "
            "forward and the first of a backward's end have no next one.",
            "`works[number] = all_gather_single(flat, mine, async_op=True)` and `works.pop(number).wait()`. Next is "
            "`number + 1` in forward and `number - 1` in backward; a backward goes no further than to the first unit "
            "that trains. Whoever frees a unit whose gather is on its way waits for it first.",
        ),
        verify=training.verify_prefetch,
    ),
)
