"""Arrays of errors; the dicts are emptied, and words are NumPy's."""

import numpy as np


def diagnose(predicted, measured):
    names = list(predicted)
    foreseen, found = (
        np.array([(each[s].seconds, each[s].communicating, each[s].across) for s in names])
        for each in (predicted, measured)
    )
    predicted.clear(), measured.clear()
    worst = int(np.argmax(np.abs(found[:, 0] - foreseen[:, 0]) / found[:, 0]))
    whole, on_link, across = found[worst] - foreseen[worst]
    if abs(whole - on_link) >= abs(on_link):
        cause = "alone"
    else:
        cause = "bytes" if abs(across) > 0.05 * foreseen[worst, 2] else "link"
    return np.array([names[worst], cause])
