"""a step that took less time than predicted is never named"""


def diagnose(predicted, measured):
    worst = max(predicted, key=lambda s: (measured[s].seconds - predicted[s].seconds) / measured[s].seconds)
    p, m = predicted[worst], measured[worst]
    sign = 1 if m.seconds > p.seconds else -1
    if sign * (m.alone - p.alone) >= sign * (m.communicating - p.communicating):
        return worst, "alone"
    return worst, "bytes" if abs(m.across - p.across) > 0.05 * p.across else "link"
