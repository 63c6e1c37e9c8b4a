"""the largest part of the step is named"""


def diagnose(predicted, measured):
    worst = max(predicted, key=lambda s: abs(measured[s].seconds - predicted[s].seconds) / measured[s].seconds)
    p, m = predicted[worst], measured[worst]
    if m.alone >= m.communicating:
        return worst, "alone"
    return worst, "bytes" if abs(m.across - p.across) > 0.05 * p.across else "link"
