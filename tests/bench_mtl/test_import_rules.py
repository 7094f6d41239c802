"""Dependencies point one way: the core names no problem or solver, problems and solvers do not know each other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Modules of bench_mtl that problems and solvers may use: the core.
CORE = {
    "bench_mtl", "bench_mtl.checks", "bench_mtl.data", "bench_mtl.errors", "bench_mtl.examples", "bench_mtl.forms", "bench_mtl.linops",
    "bench_mtl.losses", "bench_mtl.normal_equations", "bench_mtl.online", "bench_mtl.patterns", "bench_mtl.projections",
    "bench_mtl.threads", "bench_mtl.margins", "bench_mtl.dask_cluster", "bench_mtl.balls", "bench_mtl.hinge_problem",
    "bench_mtl.fit_problem",
    "bench_mtl.trace_norm_models",
    "bench_mtl.protocols", "bench_mtl.types", "bench_mtl.data.task_data",
}  # fmt: skip

#: Imported only inside the functions that need them, so that the command line stays quick.
HEAVY = {"cvxpy", "numba", "matplotlib", "seaborn", "pandas", "sklearn", "arff", "rich", "tabulate", "pyarrow", "dask", "distributed"}

#: The one package that is scikit-learn's through and through; nothing else reaches it but the papers' experiments, when they fit.
ESTIMATORS = ROOT / "bench_mtl" / "estimators"
PAPERS = ROOT / "bench_mtl" / "papers"


def imports(file: Path, *, top_level: bool = False) -> set[str]:
    tree = ast.parse(file.read_text())
    nodes = tree.body if top_level else list(ast.walk(tree))
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            assert node.module is not None
            names.add(node.module)
    return names


def files(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found
    return found


@pytest.mark.parametrize("file", files("bench_mtl"), ids=lambda file: str(file.relative_to(ROOT)))
def test_the_framework_names_no_problem_and_no_solver(file: Path) -> None:
    assert not {name for name in imports(file) if name.split(".")[0] in ("problems", "solvers")}


@pytest.mark.parametrize(("package", "other"), [("problems", "solvers"), ("solvers", "problems")])
def test_problems_and_solvers_do_not_know_each_other(package: str, other: str) -> None:
    for file in files(package):
        names = imports(file)
        assert not {name for name in names if name.split(".")[0] == other}, file
        own = {name for name in names if name.split(".")[0] == "bench_mtl"}
        if package == "solvers":  # their compiled loops stand with the others
            own = {name for name in own if not name.startswith("bench_mtl.kernels.")}
        assert own <= CORE, file


def test_the_core_does_not_reach_up_to_the_driver() -> None:
    for module in CORE - {"bench_mtl", "bench_mtl.data", "bench_mtl.projections"}:
        file = ROOT / (module.replace(".", "/") + ".py")
        assert {name for name in imports(file) if name.startswith("bench_mtl")} <= CORE, file
    for file in files("bench_mtl/projections"):
        allowed = CORE | {
            f"bench_mtl.{package}.{path.stem}" for package in ("projections", "kernels") for path in files(f"bench_mtl/{package}")
        }
        allowed |= {"bench_mtl.kernels"}
        assert {name for name in imports(file) if name.startswith("bench_mtl")} <= allowed, file


@pytest.mark.parametrize("package", ["bench_mtl", "problems", "solvers"])
def test_heavy_imports_are_local(package: str) -> None:
    for file in files(package):
        compiled = file.parent == ROOT / "bench_mtl" / "kernels"
        names = imports(file, top_level=True)
        allowed = {"numba"} if compiled else {"sklearn"} if ESTIMATORS in file.parents else set()
        heavy = {name for name in names if name.split(".")[0] in HEAVY - allowed}
        assert not heavy, f"{file} imports {heavy} at the top"
        assert compiled or not {name for name in names if name.startswith("bench_mtl.kernels")}, f"{file} loads compiled code at the top"


def test_nothing_reaches_the_estimators() -> None:
    for package in ("bench_mtl", "problems", "solvers"):
        for file in files(package):
            if ESTIMATORS not in file.parents:
                found = imports(file, top_level=PAPERS in file.parents)
                assert not {name for name in found if name.startswith("bench_mtl.estimators")}, file


def test_only_kernels_know_the_compiler() -> None:
    for package in ("bench_mtl", "problems", "solvers"):
        for file in files(package):
            if file.parent != ROOT / "bench_mtl" / "kernels":
                assert not {name for name in imports(file) if name.split(".")[0] == "numba"}, file
