"""your function returns ('hsdp', ['alone']); the strategies are"""


def diagnose(predicted, measured):
    worst = max(predicted, key=lambda s: abs(measured[s].seconds - predicted[s].seconds) / measured[s].seconds)
    return worst, ["alone"]
