"""in 2 groups"""


def split(model, units):
    groups = [list(unit.parameters()) for unit in units]
    taken = {p for group in groups for p in group}
    return [*groups, [p for p in model.parameters() if p not in taken]]
