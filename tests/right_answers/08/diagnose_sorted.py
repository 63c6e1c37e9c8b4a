"""The changes in a list, the largest last."""


def diagnose(predicted, measured):
    errors = sorted((abs(1 - predicted[s].seconds / measured[s].seconds), s) for s in predicted)
    worst = errors[-1][1]
    p, m = predicted[worst], measured[worst]
    changes = {"alone": m.alone - p.alone, "link": m.communicating - p.communicating}
    pick = max if m.seconds > p.seconds else min
    cause = pick(changes, key=changes.get)
    if cause == "link" and not 0.95 <= m.across / p.across <= 1.05:
        cause = "bytes"
    return [worst, cause]
