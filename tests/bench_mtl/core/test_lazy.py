"""Classes that are imported from the package of their modules."""

import importlib

import pytest

from bench_mtl.engine.registry import load_registry


@pytest.mark.parametrize("kind", ["problems", "solvers"])
def test_every_registered_class_can_be_imported_from_its_package(kind: str) -> None:
    package = importlib.import_module(f"bench_mtl.{kind}")
    for cls in getattr(load_registry(), kind).values():
        if cls.__module__.startswith(f"bench_mtl.{kind}"):
            assert getattr(package, cls.__name__) is cls
    with pytest.raises(ImportError, match="cannot import name 'Nobody'"):
        exec(f"from bench_mtl.{kind} import Nobody")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing
