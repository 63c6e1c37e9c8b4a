"""Lab 05, a small FSDP from hooks: its exercises, in the order of the notebook."""

from utils.checks.exercise import Exercise
from utils.checks.lab05 import accumulating, inference, rooting, sharding, splitting, training

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
            "Before a unit computes: begin it, if nobody has, finish it, then begin the next one. After the last "
            "unit of a forward nothing comes, nor, in backward, after the first unit.",
            "`works[number] = all_gather_single(flat, mine, async_op=True)` and `works.pop(number).wait()`. Next is "
            "`number + 1` in forward and `number - 1` in backward; a backward goes no further than to the first unit "
            "that trains. Whoever frees a unit whose gather is on its way waits for it first.",
        ),
        verify=training.verify_prefetch,
    ),
    Exercise(
        "05.split",
        "which unit, or the root, a parameter belongs to",
        difficulty=2,
        minutes=10,
        parameters=("model", "units"),
        hints=(
            "For each parameter ask two things: which modules use it, and which units have all of these inside? What "
            "if there are several, and what if there is none?",
            "Treat the model as one more unit, the last: it has everything inside. Then each parameter goes to the "
            "*smallest* of those that have all its users. `model.parameters()` gives a tied weight once.",
            "A module's own parameters are `module.parameters(recurse=False)`; compare with `is`. Of a parameter take "
            "the set of its users; a unit has all of them inside if that is a subset, `<=`, of `set(unit.modules())`. "
            "The smallest unit is the one with the fewest modules.",
        ),
        verify=splitting.verify,
    ),
    Exercise(
        "05.root",
        "a root that is kept from forward to backward",
        difficulty=4,
        minutes=20,
        parameters=("model", "units", "make_optimizer"),
        hints=(
            "What follows directly on the model's forward? So what would freeing the root after it and gathering it "
            "again bring? And what follows when gradients are off?",
            "Begin with a copy of `fsdp`. The groups are those of `split`, the modules `[*units, model]`. Only the "
            "hook after the root's forward differs: it frees nothing, unless no backward will come.",
            "In the hook after a forward a unit is freed always, the root if `torch.is_grad_enabled()` says False. "
            "`gather` does nothing where the storage has its size, so that the root's pre-hook of "
            "backward may stay. A unit whose parameters all lie in nested ones has an empty group: leave it out.",
        ),
        verify=rooting.verify,
    ),
    Exercise(
        "05.accumulate",
        "reduce in the last micro-batch alone",
        difficulty=3,
        minutes=15,
        parameters=("units", "make_optimizer"),
        hints=(
            "Autograd adds to a `.grad` that is there. So what has to happen to a unit's gradients in a micro-batch "
            "that is not the last: what, and what not? And its weights?",
            "Begin with a copy of `fsdp`. When a unit's last gradient of this backward is ready, its weights are "
            "freed; only if gradients are to be reduced now, it is reduced. `.grad is not None` no longer tells what "
            "is ready: the micro-batches before have left theirs.",
            "Before a unit's backward note how many gradients are missing, `len(groups[number])`; each call of `ready` "
            "takes one away, and at 0 the unit is reduced, or its weights alone are freed. `set_sync` writes to a name "
            "of the function around it: `nonlocal sync`.",
        ),
        verify=accumulating.verify,
    ),
)
