"""The shares of each part in the whole error."""


def diagnose(predicted, measured):
    errors = {s: measured[s].seconds - predicted[s].seconds for s in predicted}
    worst = sorted(errors, key=lambda s: -abs(errors[s]) / measured[s].seconds)[0]
    p, m = predicted[worst], measured[worst]
    if (m.alone - p.alone) / errors[worst] >= 0.5:
        return worst, "alone"
    return worst, "link" if abs(m.across / p.across - 1) <= 0.05 else "bytes"
