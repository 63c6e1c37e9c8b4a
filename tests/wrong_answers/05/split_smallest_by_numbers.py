"""`1.inner.weight` is in the group of `1`, and belongs to `1.inner`: the innermost unit that has it owns it"""


def split(model, units):
    inside = [set(module.modules()) for module in (*units, model)]
    groups = [[] for _ in inside]
    sizes = [sum(p.numel() for p in module.parameters()) for module in (*units, model)]
    for p in model.parameters():
        users = {m for m in model.modules() if any(q is p for q in m.parameters(recurse=False))}
        having_all = [number for number, modules in enumerate(inside) if users <= modules]
        groups[min(having_all, key=lambda number: sizes[number])].append(p)
    return groups
