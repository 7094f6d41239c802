"""The digest of a case covers the code that computes its numbers, and nothing else."""

import importlib
import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import bench_mtl
from bench_mtl.engine import source_digest as module
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.engine.source_digest import NUMERICAL_PACKAGES, source_digest, source_modules


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the package, whose files may be edited, in the place of the one that is imported."""
    copy = tmp_path / "bench_mtl"
    shutil.copytree(Path(bench_mtl.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__", "papers", "report", "*.csv*"))
    monkeypatch.setattr(bench_mtl, "__path__", [str(copy)])
    yield copy
    source_digest.cache_clear()  # the tests after this one are planned with the code that is imported


def digests(registry: Registry) -> dict[str, str]:
    source_digest.cache_clear()
    return {name: source_digest(cls) for name, cls in {**registry.problems, **registry.solvers}.items()}


def changed_by(edited: Path, registry: Registry) -> set[str]:
    """Return the names of the problems and solvers whose digest an edit of a file changes."""
    before = digests(registry)
    edited.write_text(f"{edited.read_text()}\n# edited\n")
    after = digests(registry)
    return {name for name in before if before[name] != after[name]}


#: Of an edited file: whose digests it changes, and whose it does not; None stands for all others.
EDITED: dict[str, tuple[set[str], set[str] | None]] = {
    "solvers/pdhg/kernels.py": ({"pdhg", "auto"}, None),
    "solvers/interior_point/kernels.py": ({"interior_point", "working_set", "auto"}, set()),
    "solvers/kernels/split.py": ({"projected_gradient"}, {"pdhg"}),  # loops that two solvers share lie beside them
    "projections/kernels/l1inf.py": ({"l1inf_hinge", "l1inf_glm"}, {"conic", "simplex_newton", "portfolio"}),
    "projections/kernels/box.py": ({"auto", "portfolio", "simplex_newton"}, None),
    "model/losses.py": ({"l1inf_hinge", "trace_norm_glm"}, set()),
    "core/checks.py": ({"l1inf_glm", "dirty_model"}, set()),  # which turns shares into weights
    **{f"{name}.py": (set(), None) for name in ("engine/driver", "results/database", "cli/run", "core/errors", "__init__")},
}


def test_the_files_that_compute_a_number_are_part_of_its_digest_and_no_others(package: Path, registry: Registry) -> None:
    for edited, (whose, others) in EDITED.items():
        changed = changed_by(package / edited, registry)
        assert whose <= changed, edited
        assert changed == whose if others is None else changed.isdisjoint(others), edited
    assert set(registry.problems) <= changed_by(package / "core/designs.py", registry)
    assert changed_by(package / "model/protocols.py", registry) == {*registry.problems, *registry.solvers}


def test_a_digest_does_not_depend_on_the_place(package: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = digests(registry)
    monkeypatch.undo()
    assert digests(registry) == copied
    assert all(len(digest) == 16 for digest in copied.values())
    assert len({copied[name] for name in registry.problems}) == len(registry.problems)


def test_what_is_left_out_exists() -> None:
    for name in module._WITHOUT_NUMBERS | set(NUMERICAL_PACKAGES):
        assert importlib.util.find_spec(name) is not None, name


def test_of_a_plugin_file_its_own_file_and_what_it_imports_count(tmp_path: Path, package: Path) -> None:
    file = tmp_path / "solvers" / "mine.py"
    file.parent.mkdir()
    lines = ('"""Mine.', "", "import nothing here (", '"""', "class Mine:", "    def run(self):")
    imports = ("        from bench_mtl.projections import (", "            project_l1_ball,", "        )", "")
    text = "\n".join((*lines, *imports))
    file.write_text(text)
    first = load(file)
    before = source_digest(first.Mine)
    assert "bench_mtl.projections.simplex" in source_modules(first.Mine)
    assert "bench_mtl.projections.l1inf_ball" not in source_modules(first.Mine)
    file.write_text(f"{text}        return 1\n")
    edited = source_digest(load(file).Mine)
    assert edited != before
    kernel = package / "projections/kernels/simplex.py"
    kernel.write_text(f"{kernel.read_text()}\n# edited\n")
    assert source_digest(load(file).Mine) not in (before, edited)


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_mtl_plugin_solvers_mine", file)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def test_of_an_installed_package_the_package_of_the_class_and_what_it_imports_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_solvers" / "own"
    package.mkdir(parents=True)
    for name, text in (
        ("../__init__", ""),
        ("../shared", "y = 1\n"),
        ("../other", "z = 1\n"),
        ("__init__", ""),
        ("solver", "class Own:\n    def run(self):\n        from .. import shared\n        from .lazy import x as y\n"),
        ("lazy", "x = 1\n"),
        ("helper", "x = 1\n"),
    ):
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    own = importlib.import_module("some_solvers.own.solver").Own
    digests = [source_digest(own)]
    for name in ("helper", "lazy", "../shared"):
        (package / f"{name}.py").write_text("edited = 2\n")
        source_digest.cache_clear()
        digests.append(source_digest(own))
    assert len(set(digests)) == 4
    (package / "../other.py").write_text("edited = 2\n")
    source_digest.cache_clear()
    assert source_digest(own) == digests[-1]


def test_functions_have_a_digest_of_what_they_import_and_sessions_have_none() -> None:
    assert "bench_mtl.engine.source_digest" in source_modules(changed_by, (*NUMERICAL_PACKAGES, "bench_mtl.engine"))
    assert source_digest(type("Own", (), {"__module__": "nowhere"})) == ""


def test_imports_that_are_hard_to_read_count(tmp_path: Path) -> None:
    file = tmp_path / "hard.py"
    file.write_text(
        "from bench_mtl.core.checks import (\n    one_of,  # of options (strings)\n    real_number,\n)\n"
        "if True: import bench_mtl.core.designs\nx = 1; from bench_mtl.model.losses import LOSSES\n"
    )
    found = module._read("hard", str(file), 0, 0).imports
    assert {each.module for each in found} == {"bench_mtl.core.checks", "bench_mtl.core.designs", "bench_mtl.model.losses"}
    assert {each.name for each in found} == {"one_of", "real_number", "LOSSES", ""}


def test_a_plug_in_has_the_digest_of_its_own_folder_whichever_was_opened_since(tmp_path: Path) -> None:
    text = "from bench_mtl.problems.l1inf_hinge import L1InfHinge\n\n\nclass Mine(L1InfHinge):\n    name = 'mine'\n    size = {}\n"
    for place in ("one", "two"):
        (tmp_path / place / "problems").mkdir(parents=True)
        (tmp_path / place / "problems" / "mine.py").write_text(text.format(len(place)))
    first = load_registry(tmp_path / "one").problem("mine")
    (tmp_path / "two" / "problems" / "mine.py").write_text(text.format(7))
    second = load_registry(tmp_path / "two").problem("mine")
    again = load_registry(tmp_path / "one").problem("mine")
    assert source_digest(first) == source_digest(again) != ""
    assert source_digest(second) not in ("", source_digest(first))
