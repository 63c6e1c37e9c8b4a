"""The laws as the package has them."""

from utils.theory.hybrid import shard_sizes
from utils.theory.memory import model_states
from utils.theory.traffic import step_bytes


def shard_size(parameters, nodes, per_node, memory, goodput, latency):
    n, best = nodes * per_node, None
    for size in shard_sizes(nodes, per_node):
        if model_states(parameters, n, "hsdp", size).total > memory:
            continue
        steps = 2 * (n // size - 1) + (3 * (size - 1) if size > per_node else 0)
        time = step_bytes(parameters, "hsdp", n, size, nodes).across / goodput + (steps * latency if nodes > 1 else 0)
        if best is None or time <= best[0]:
            best = time, size
    return best and best[1]
