"""Units from the smallest to the largest; each takes what is left and used nowhere else."""


def split(model, units):
    left, found = set(model.parameters()), {}
    for unit in sorted([*units, model], key=lambda unit: len(list(unit.modules()))):
        inside = set(unit.modules())
        outside = {p for m in model.modules() if m not in inside for p in m.parameters(recurse=False)}
        found[unit] = [p for p in unit.parameters() if p in left and p not in outside]
        left -= set(found[unit])
    return [found[unit] for unit in (*units, model)]
