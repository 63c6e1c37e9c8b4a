"""nothing clips, or only after the step"""


def clip_gradients(optimizer, max_norm):
    pass
