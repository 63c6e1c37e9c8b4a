"""a parameter is sharded twice"""


def root(model, units, make_optimizer):
    return fsdp(units, make_optimizer)
