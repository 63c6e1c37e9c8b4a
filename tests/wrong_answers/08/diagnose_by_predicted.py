"""errors are divided by what was predicted"""


def diagnose(predicted, measured):
    worst = max(predicted, key=lambda s: abs(measured[s].seconds - predicted[s].seconds) / predicted[s].seconds)
    p, m = predicted[worst], measured[worst]
    if abs(m.alone - p.alone) >= abs(m.communicating - p.communicating):
        return worst, "alone"
    return worst, "bytes" if abs(m.across - p.across) > 0.05 * p.across else "link"
