"""Names of a package that are imported at their first use, so that what is not used costs no time."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


def lazily(
    package: str, names: dict[str, str], renamed: dict[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    `names`: by module the names in it, with blanks between them, where a dot is the module itself; `renamed`: what is
    said of names that are not used any more.
    """
    places = {}
    for module, listed in names.items():
        for name in listed.split():
            places[module.rpartition(".")[2] if name == "." else name] = module, name

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError((renamed or {}).get(name, f"module {package!r} has no attribute {name!r}"))
        module, what = places[name]
        found = importlib.import_module(module)
        found = found if what == "." else getattr(found, what)
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted({*vars(sys.modules[package]), *places}), sorted(places)


def given_up(package: str, said: dict[str, str]) -> Callable[[str], Any]:
    """`__getattr__` of a package for names that are not used any more, with what is said of each."""
    return lazily(package, {}, said)[0]
