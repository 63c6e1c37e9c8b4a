"""`bytes` is never the answer"""


def diagnose(predicted, measured):
    worst = max(predicted, key=lambda s: abs(measured[s].seconds - predicted[s].seconds) / measured[s].seconds)
    p, m = predicted[worst], measured[worst]
    sign = 1 if m.seconds > p.seconds else -1
    if sign * (m.alone - p.alone) >= sign * (m.communicating - p.communicating):
        return worst, "alone"
    return worst, "link"
