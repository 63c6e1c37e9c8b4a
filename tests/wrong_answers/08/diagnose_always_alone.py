"""the cause is always the same, 'alone'"""


def diagnose(predicted, measured):
    return max(predicted, key=lambda s: abs(measured[s].seconds - predicted[s].seconds) / measured[s].seconds), "alone"
