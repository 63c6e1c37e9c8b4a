"""Lab 06, HSDP on nodes: its exercises, in the order of the notebook."""

from utils.checks.exercise import Exercise
from utils.checks.lab06 import choosing, grouping, hybrid, reducing

EXERCISES = (
    Exercise(
        "06.groups",
        "a shard group and a replica group for each rank",
        difficulty=2,
        minutes=15,
        parameters=("ranks_per_node",),
        hints=(
            "Write the ranks as a table, one row for each node. Which groups are the rows, which the columns? How many "
            "of both are there, and who has to know of each?",
            "`dist.new_group(ranks)` is a collective of all ranks: each calls it for every row and then for every "
            "column, in the same order, also for groups that it is not in. Keep the row and the column of this rank.",
            "`node, place = divmod(dist.get_rank(), ranks_per_node)`. Row n holds `n * ranks_per_node + p` for all p, "
            "column p the same numbers for all n. Before all that: `if world_size % ranks_per_node: raise "
            "ValueError(…)`.",
        ),
        verify=grouping.verify,
    ),
    Exercise(
        "06.reduce",
        "reduce-scatter inside the node, all-reduce of the shard across",
        difficulty=3,
        minutes=15,
        parameters=("gradient", "shard_group", "replica_group"),
        hints=(
            "After a reduce-scatter inside the node a rank has its slice of the node's sum. Who else has a sum of that "
            "same slice, and how many bytes are that now?",
            "Two collectives, the small one across: `reduce_scatter_single` into a new tensor in the shard group, then "
            "`dist.all_reduce` of that tensor in the replica group. Both sum; one division, by all ranks.",
            "It has as many numbers as `gradient`, divided by G, which is `dist.get_world_size(shard_group)`; "
            "without a group that gives N. Both collectives take `group=…`.",
        ),
        verify=reducing.verify,
    ),
    Exercise(
        "06.hsdp",
        "gather inside, reduce on both levels, step the shards",
        difficulty=4,
        minutes=30,
        parameters=("units", "make_optimizer", "shard_group", "replica_group"),
        hints=(
            "What of FSDP on one node stays as it is? Which of its collectives needs another group, and which one gets "
            "a second level? And what has to be equal on all nodes before the first step?",
            "Broadcast every parameter from rank 0. `wrap` each unit with the place and the size of the *shard group*, "
            "a function that all-gathers in it, and one that calls your `reduce`. The rest is the `step` of lab 05.",
            "`gather(flat, mine)` is `all_gather_single(flat, mine, group=shard_group)`. Masters are `mine.float()`; "
            "in `step`: every `finish()`, gradients to the masters, `optimizer.step()` and `optimizer.zero_grad()`, "
            "masters into the shards, gradient shards to zero.",
        ),
        verify=hybrid.verify,
    ),
    Exercise(
        "06.shard_size",
        "the shard group for a memory and a link",
        difficulty=3,
        minutes=15,
        parameters=("parameters", "nodes", "per_node", "memory", "goodput", "latency"),
        hints=(
            "Three questions for each size: does it fit, how many bytes cross, and how many steps do the rings that "
            "cross take? Which of the three depends on whether a group lies within a node?",
            "List the sizes, keep those with `16 * parameters / size <= memory`, and take the one whose time on the "
            "link is least: bytes over `goodput`, plus steps times `latency`. A group within a node gathers without "
            "the link.",
            "With `replicas = nodes * per_node // size` and `span = max(1, size // per_node)`, the nodes of a group: "
            "all-reduces send `2 * (replicas - 1) / replicas * S / span`, and only if `span > 1` come `3 * (size - 1) "
            "/ size * S` and 3 (size - 1) steps.",
        ),
        verify=choosing.verify,
    ),
)
