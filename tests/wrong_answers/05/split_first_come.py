"""its users, `1.0` and `2.0`, must all lie inside"""


def split(model, units):
    taken, groups = set(), []
    for unit in (*sorted(units, key=lambda unit: len(list(unit.modules()))), model):
        groups.append((unit, [p for p in unit.parameters() if p not in taken]))
        taken |= set(unit.parameters())
    return [next(group for owner, group in groups if owner is unit) for unit in (*units, model)]
