"""`masters` of the checkpoint is to be a list"""


def save(buckets, optimizer):
    return optimizer.state_dict()
