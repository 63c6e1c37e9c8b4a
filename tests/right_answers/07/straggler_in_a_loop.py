"""Counts and delays in loops."""


def straggler(timeline):
    last, steps = [0] * len(timeline), []
    everyone = set(range(len(timeline)))
    kept = [[op for op in ops if op.kind == "all_reduce" and set(op.ranks) == everyone] for ops in timeline]
    for number in range(len(kept[0])):
        step = [ops[number].issued_at for ops in kept]
        last[step.index(max(step))] += 1
        steps.append(step)
    slow = last.index(max(last))
    if last[slow] <= len(steps) / 2:
        return None
    delays = sorted(step[slow] - max(t for r, t in enumerate(step) if r != slow) for step in steps)
    middle = len(delays) // 2
    return slow, delays[middle] if len(delays) % 2 else (delays[middle - 1] + delays[middle]) / 2
