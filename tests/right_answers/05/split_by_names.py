"""Owners by the names of modules: the longest prefix that all names of a weight have in common."""


def split(model, units):
    named = {id(module): name for name, module in model.named_modules()}
    owners = [named[id(unit)] + "." for unit in units] + [""]
    names = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        names.setdefault(p, []).append(name)
    groups = [[] for _ in owners]
    for p, all_names in names.items():
        having = [owner for owner in owners if all(name.startswith(owner) for name in all_names)]
        groups[owners.index(max(having, key=len))].append(p)
    return groups
