"""the bytes across differ by -20.0%"""


def diagnose(predicted, measured):
    worst = max(predicted, key=lambda s: abs(measured[s].seconds - predicted[s].seconds) / measured[s].seconds)
    p, m = predicted[worst], measured[worst]
    if abs(m.alone - p.alone) >= abs(m.communicating - p.communicating):
        return worst, "alone"
    return worst, "bytes" if m.across > 1.05 * p.across else "link"
