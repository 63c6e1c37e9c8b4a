"""the innermost unit that has it owns it"""


def split(model, units):
    inside = [set(module.modules()) for module in (*units, model)]
    groups = [[] for _ in inside]
    for p in model.parameters():
        users = {m for m in model.modules() if any(q is p for q in m.parameters(recurse=False))}
        having_all = [number for number, modules in enumerate(inside) if users <= modules]
        groups[max(having_all[:-1] or having_all, key=lambda number: len(inside[number]))].append(p)
    return groups
