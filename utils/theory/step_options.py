"""The options of `step_time.simulate_step` that only some strategies have."""

from __future__ import annotations

from utils.theory.arguments import check_whole, check_yes_or_no
from utils.theory.memory import GATHERING
from utils.theory.units import shown


def check_options(
    strategy: str, bucket_bytes: object, buckets: object, overlap: bool, prefetch: object, reshard: bool
) -> None:
    """Raise ValueError, in one sentence, for one that the strategy does not have, or that another one excludes."""
    check_yes_or_no("overlap", overlap)
    check_yes_or_no("reshard", reshard)
    if prefetch is not None:
        check_whole("prefetch", prefetch, "how many units ahead a gather is issued", least=0)
        if not overlap:
            raise ValueError(f"prefetch is {prefetch}, but overlap is False, so that nothing runs ahead: leave one out")
    gathers = strategy in GATHERING
    for name, value, fits in (
        ("bucket_bytes", bucket_bytes, not gathers),
        ("buckets", buckets, not gathers),
        ("prefetch", prefetch, gathers),
        ("reshard", None if reshard else reshard, gathers),
    ):
        if value is not None and not fits:
            what = "has no buckets" if gathers else "gathers no parameters to compute"
            raise ValueError(f"{name} is {shown(value)}, but {strategy} {what}: leave it out")
    if bucket_bytes is not None and buckets is not None:
        raise ValueError(f"bucket_bytes is {shown(bucket_bytes)}, but buckets are given too: leave one of them out")
