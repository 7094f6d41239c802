"""The reference has a place for every public name, and every public name says what it is."""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench_mtl.engine.registry import load_registry

PAGES = sorted((Path(__file__).resolve().parents[1] / "docs" / "api").glob("*.md"))

#: Packages whose `__all__` is public.
PUBLIC = (
    "bench_mtl", "bench_mtl.comparing", "bench_mtl.data", "bench_mtl.enclosures", "bench_mtl.estimators", "bench_mtl.metrics",
    "bench_mtl.model.forms",
    "bench_mtl.projections", "bench_mtl.publish", "bench_mtl.report", "bench_mtl.report.figures", "bench_mtl.results",
    "bench_mtl.stats", "bench_mtl.weak_learners",
)  # fmt: skip

#: Every entry of the reference, by the page that it stands on.
ENTRIES = [(page.name, path) for page in PAGES for path in re.findall(r"^::: (\S+)$", page.read_text(), flags=re.MULTILINE)]


def named(path: str) -> Any:
    """Return what a dotted path names."""
    package, _, name = path.rpartition(".")
    try:
        thing: Any = importlib.import_module(package)
    except ModuleNotFoundError:
        thing = named(package)
    return getattr(thing, name)


def is_explained(thing: Any) -> bool:
    """Return whether a class or a function has a docstring that somebody wrote."""
    return bool(thing.__doc__) and not thing.__doc__.startswith(f"{thing.__name__}(") and thing.__doc__ != inspect.getdoc(object)


@pytest.fixture(scope="module")
def shown() -> list[Any]:
    return [named(path) for _, path in ENTRIES]


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_has_its_place(package: str, shown: list[Any]) -> None:
    module: ModuleType = importlib.import_module(package)
    words = "".join(page.read_text() for page in PAGES)
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            assert any(thing is other for other in shown), f"{package}.{name} has no entry in docs/api"
            assert is_explained(thing), f"{package}.{name} has no docstring"
        else:
            assert f"`{name}`" in words, f"no page of docs/api names {package}.{name}"


def test_every_entry_has_one_place_and_a_docstring(shown: list[Any]) -> None:
    for (page, path), thing in zip(ENTRIES, shown, strict=True):
        assert sum(thing is other for other in shown) == 1, f"{path} has several entries"
        assert is_explained(thing), f"{path} in docs/api/{page} has no docstring"


def test_every_installed_problem_and_solver_has_its_place(shown: list[Any]) -> None:
    registry = load_registry()
    for kind in (*registry.problems.values(), *registry.solvers.values()):
        assert any(kind is other for other in shown), f"{kind.__name__} has no entry in docs/api"
