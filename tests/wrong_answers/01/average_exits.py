"""ends its process: the function called exit(0)"""

import sys


def average_gradients(model):
    sys.exit(0)
