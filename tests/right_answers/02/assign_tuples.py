"""Recursion, and tuples."""


def assign_buckets(sizes, cap):
    if not sizes:
        return ()
    cut = next((i for i in reversed(range(len(sizes))) if sum(sizes[i:]) >= cap), 0)
    return (tuple(reversed(range(cut, len(sizes)))), *assign_buckets(sizes[:cut], cap))
