"""`alone` is never the answer"""


def diagnose(predicted, measured):
    worst = max(predicted, key=lambda s: abs(measured[s].seconds - predicted[s].seconds) / measured[s].seconds)
    crossed = abs(measured[worst].across - predicted[worst].across)
    return worst, "bytes" if crossed > 0.05 * predicted[worst].across else "link"
