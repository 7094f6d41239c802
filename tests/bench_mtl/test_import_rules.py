"""Dependencies point one way: a folder imports only from those below it, and the framework names no problem and no solver."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: The folders of `bench_mtl` from the ground up.
ORDER = (
    "core", "projections", "stats", "model", "weak_learners", "metrics", "data", "engine", "enclosures", "results", "runner", "report",
    "publish", "comparing", "estimators", "validation", "cli",
)  # fmt: skip

#: What problems and solvers may use.
GROUND = ("core", "projections", "model", "weak_learners")

#: How many floors the house may have: folders on the longest chain of imports.
MOST_FLOORS = 12

#: Imported only inside the functions that need them, so that the command line stays quick.
HEAVY = {
    "cvxpy", "numba", "matplotlib", "seaborn", "pandas", "sklearn", "arff", "rich", "tabulate", "pyarrow", "dask", "distributed", "celer",
    "skglm", "cyanure", "spams", "clarabel", "jax",
}  # fmt: skip


def files(package: str) -> list[Path]:
    found = sorted(file for file in (ROOT / package).rglob("*.py") if not {"problems", "solvers"} & set(file.relative_to(ROOT).parts[1:3]))
    assert found
    return found


FILES = [file for package in ("bench_mtl", "problems", "solvers") for file in files(package)]


@cache
def statements(file: Path) -> dict[str, list[ast.Import | ast.ImportFrom]]:
    """Return the imports of a file, "anywhere" and at its "top". It is parsed once for all rules, which takes seconds for all files."""
    tree = ast.parse(file.read_text())
    places = {"anywhere": ast.walk(tree), "top": tree.body}
    return {place: [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)] for place, nodes in places.items()}


@cache
def imports(file: Path, *, top_level: bool = False) -> frozenset[str]:
    """Names of the modules that `file` imports; from which names are taken does not matter."""
    names: set[str] = set()
    for node in statements(file)["top" if top_level else "anywhere"]:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            assert node.module is not None
            names |= (
                {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)} if node.module == "bench_mtl" else {node.module}
            )
    return frozenset(names)


def room(file: Path) -> str:
    """Return the folder of a file: one of `ORDER`, "problems", "solvers", or "" for the files at the root of bench_mtl."""
    parts = file.relative_to(ROOT).parts
    return parts[0] if parts[0] != "bench_mtl" else parts[1] if len(parts) > 2 else ""


def rooms_used(file: Path) -> set[str]:
    used = {name.split(".")[1] for name in imports(file) if name.startswith("bench_mtl.")}
    return used & {*ORDER, "problems", "solvers"}


def is_compiled(file: Path) -> bool:
    return file.name == "kernels.py" or file.parent.name == "kernels"


@pytest.mark.parametrize("package", ORDER)
def test_a_folder_imports_only_from_those_below_it(package: str) -> None:
    below = set(ORDER[: ORDER.index(package) + 1])
    for file in files(f"bench_mtl/{package}"):
        assert rooms_used(file) <= below, file.relative_to(ROOT)


def test_nothing_stands_outside_the_order() -> None:
    folders = {entry.name for entry in (ROOT / "bench_mtl").iterdir() if entry.is_dir() and entry.name != "__pycache__"}
    assert folders == {*ORDER, "problems", "solvers"}
    assert {file.name for file in (ROOT / "bench_mtl").glob("*.py")} == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("package", ["problems", "solvers"])
def test_problems_and_solvers_use_the_ground_and_not_each_other(package: str) -> None:
    for file in files(package):
        assert rooms_used(file) <= {*GROUND, package}, file.relative_to(ROOT)


def test_problems_and_solvers_are_imported_from_bench_mtl() -> None:
    """A package of a user's own may have either name."""
    for file in FILES:
        assert not {name for name in imports(file) if name.split(".")[0] in ("problems", "solvers")}, file.relative_to(ROOT)
        assert room(file) or not rooms_used(file) & {"problems", "solvers"}, file.relative_to(ROOT)


def test_the_house_has_few_floors() -> None:
    uses = {name: set[str]() for name in (*ORDER, "problems", "solvers")}
    for file in FILES:
        if room(file):
            uses[room(file)] |= rooms_used(file) - {room(file)}

    @cache
    def floor(name: str) -> int:
        return 1 + max((floor(other) for other in uses[name]), default=0)

    assert max(map(floor, uses)) <= MOST_FLOORS


@cache
def modules() -> dict[str, Path]:
    """Files by the names of their modules."""
    found = {}
    for file in FILES:
        parts = file.relative_to(ROOT).with_suffix("").parts
        parts = parts if parts[0] == "bench_mtl" else ("bench_mtl", *parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions and for type checkers count as well; only the package itself names for these what it hands on."""
    known = {name: file for name, file in modules().items() if name != "bench_mtl"}
    uses = {name: {used for used in _precise(file) if used in known and used != name} for name, file in known.items()}

    def circle(name: str, path: tuple[str, ...], done: set[str]) -> tuple[str, ...] | None:
        if name in path:
            return (*path[path.index(name) :], name)
        if name in done:
            return None
        for other in sorted(uses[name]):
            if found := circle(other, (*path, name), done):
                return found
        done.add(name)
        return None

    done: set[str] = set()
    for name in known:
        assert (found := circle(name, (), done)) is None, " -> ".join(found)


def _precise(file: Path) -> Iterator[str]:
    """Yield what a file imports, also for type checkers: of a package the module in it where that is named, else the package itself."""
    known = modules()
    for node in statements(file)["anywhere"]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module for name in inner)


def test_heavy_imports_are_local() -> None:
    for file in FILES:
        names = imports(file, top_level=True)
        allowed = {"numba", "jax"} if is_compiled(file) else {"sklearn"} if room(file) == "estimators" else set()
        heavy = {name for name in names if name.split(".")[0] in HEAVY - allowed}
        assert not heavy, f"{file} imports {heavy} at the top"
        kernels = {name for name in names if "kernels" in name.split(".")}
        assert is_compiled(file) or not kernels, f"{file} loads compiled code at the top"


def test_only_kernels_know_the_compiler() -> None:
    for file in FILES:
        assert is_compiled(file) or not {name for name in imports(file) if name.split(".")[0] == "numba"}, file


def test_nothing_loads_the_estimators_at_the_top() -> None:
    """They are scikit-learn's through and through."""
    for file in FILES:
        if room(file) != "estimators":
            assert not {name for name in imports(file) if name.startswith("bench_mtl.estimators")}, file
