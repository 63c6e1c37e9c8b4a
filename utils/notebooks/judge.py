"""What judges inside the kernel of a submission: made ready before the first of its cells, called at each check.

A cell may rebind the names that a check uses, by accident or not: `print`, `sys.stdout`, `utils.check`. So what is
needed is kept here, and functions, classes and tables of this repository are put back before each check.
"""

from __future__ import annotations

import json
import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from IPython import get_ipython

_ROOMS = ("utils", "utils.checks", "utils.runtime", "utils.theory")


def prepare(lab: str, token: str, names: dict[str, Any]) -> None:
    """From now on `import TOKEN` gives a module whose `judge(exercise_id, name)` judges what `names` holds.

    Args:
        lab: The lab whose exercises will be judged, such as "03".
        token: A word that no cell knows beforehand; verdicts are shown as data of this kind, [state, message].
        names: The global names of the kernel.
    """
    _import_all(lab)
    module = ModuleType(token)
    module.judge = _judge_for(token, names)
    sys.modules[token] = module


def _import_all(lab: str) -> None:
    """Import what the lab's checks may use, so that there is nothing left to be changed before it is first imported."""
    for room in (*_ROOMS, f"utils.checks.lab{lab}"):
        found = import_module(room)
        for each in pkgutil.iter_modules(getattr(found, "__path__", ())):
            if room != "utils" and not each.name.startswith("lab") and not each.name.startswith("_"):
                import_module(f"{room}.{each.name}")


def _judge_for(token: str, names: dict[str, Any]) -> Callable[[str, str], None]:
    check, told = import_module("utils.checks").check, json.JSONEncoder().encode
    publish = get_ipython().display_pub.publish  # not printed: a cell may have led `sys.stdout` elsewhere
    suite = [module for name, module in sys.modules.items() if name.partition(".")[0] == "utils"]
    kept = [(vars(module), _fixed(module)) for module in suite]

    def judge(exercise_id: str, name: str) -> None:
        for now, before in kept:
            now.update(before)
        verdict = check(exercise_id, names.get(name))
        publish({token: told([verdict.state, verdict.message])})

    return judge


def _fixed(module: ModuleType) -> dict[str, Any]:
    """What a module never changes by itself: functions, classes, modules, tables, and names that say CONSTANT."""
    fixed = (FunctionType, type, ModuleType, tuple)
    return {name: value for name, value in vars(module).items() if isinstance(value, fixed) or name.isupper()}
