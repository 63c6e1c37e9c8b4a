"""ask first which part of the step changed most"""


def diagnose(predicted, measured):
    worst = max(predicted, key=lambda s: abs(measured[s].seconds - predicted[s].seconds) / measured[s].seconds)
    p, m = predicted[worst], measured[worst]
    sign = 1 if m.seconds > p.seconds else -1
    if abs(m.across - p.across) > 0.05 * p.across:
        return worst, "bytes"
    return worst, "alone" if sign * (m.alone - p.alone) >= sign * (m.communicating - p.communicating) else "link"
