"""a rank's process ended inside your function"""

import os


def average_gradients(model):
    os._exit(7)
