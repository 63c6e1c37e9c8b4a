"""where both did as much it is 'alone'"""


def diagnose(predicted, measured):
    worst = max(predicted, key=lambda s: abs(measured[s].seconds - predicted[s].seconds) / measured[s].seconds)
    p, m = predicted[worst], measured[worst]
    if abs(m.alone - p.alone) > abs(m.communicating - p.communicating):
        return worst, "alone"
    return worst, "bytes" if abs(m.across - p.across) > 0.05 * p.across else "link"
