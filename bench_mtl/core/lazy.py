"""Classes of the modules of a package, imported from the package itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def class_finder(package: str, path: Iterable[str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package: it finds a class in the package's modules, which are imported when one is first asked for."""

    def find(name: str) -> Any:
        if name[:1].isupper():  # modules are in lower case, and are found without it
            for module in iter_modules(path, f"{package}."):
                found = getattr(import_module(module.name), name, None)
                if isinstance(found, type) and found.__module__.startswith(module.name):
                    return found
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
