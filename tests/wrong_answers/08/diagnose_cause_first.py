"""the strategies are ddp, zero1, fsdp, hsdp, the causes bytes, link, alone"""


def diagnose(predicted, measured):
    worst = max(predicted, key=lambda s: abs(measured[s].seconds - predicted[s].seconds) / measured[s].seconds)
    p, m = predicted[worst], measured[worst]
    sign = 1 if m.seconds > p.seconds else -1
    if sign * (m.alone - p.alone) >= sign * (m.communicating - p.communicating):
        return "alone", worst
    return worst, "bytes" if abs(m.across - p.across) > 0.05 * p.across else "link"
