"""a parameter is sharded twice"""


def root(model, units, make_optimizer):
    inside = {m for unit in units for m in unit.modules()}
    rest = [m for m in model.children() if m not in inside and any(True for _ in m.parameters())]
    return fsdp([*units, *rest], make_optimizer)
