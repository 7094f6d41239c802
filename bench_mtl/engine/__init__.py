"""What runs one solver on one problem, and what finds both: clock, driver, registry, suites, environment, regularisation path.

Public names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench_mtl.engine.registry import Registry
    from bench_mtl.engine.source_digest import NUMERICAL_PACKAGES
    from bench_mtl.engine.source_digest import source_digest as digest_of_code
    from bench_mtl.engine.suite import digest

_MODULES = {
    "NUMERICAL_PACKAGES": ("source_digest", "NUMERICAL_PACKAGES"),
    "Registry": ("registry", "Registry"),
    "digest": ("suite", "digest"),
    "digest_of_code": ("source_digest", "source_digest"),
}

__all__ = ["NUMERICAL_PACKAGES", "Registry", "digest", "digest_of_code"]


def __getattr__(name: str) -> object:
    """Load a public name."""
    if name not in _MODULES:
        raise AttributeError(f"module 'bench_mtl.engine' has no attribute '{name}'")
    import importlib

    module, attribute = _MODULES[name]
    return getattr(importlib.import_module(f"bench_mtl.engine.{module}"), attribute)
