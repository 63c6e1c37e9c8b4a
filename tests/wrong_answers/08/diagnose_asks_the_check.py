"""is what this check compares with"""

from utils.checks.lab08.diagnosing import diagnosis


def diagnose(predicted, measured):
    return diagnosis(predicted, measured)
