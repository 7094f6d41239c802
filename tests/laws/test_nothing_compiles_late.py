"""After its rehearsal no run compiles anything, nor loads anything compiled, on larger instances than the rehearsed ones."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import IterativeSolver, Limits, Problem, TaskData, Tolerance, load_registry, run
from bench_mtl.engine import rehearsal
from bench_mtl.model import tiny_data
from bench_mtl.problems import L1BallGLM, L1InfGLM, SparseLowRank

REGISTRY = load_registry()
#: JAX compiles for every shape of data anew: tests/solvers/test_accelerator.py shows that the clock stands meanwhile.
FOR_EVERY_SHAPE = {"accelerator_gradient", "accelerator_interior_point", "accelerator_pdhg"}
ITERATIVE = sorted(name for name, kind in REGISTRY.solvers.items() if issubclass(kind, IterativeSolver) and name not in FOR_EVERY_SHAPE)


@pytest.fixture
def nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of this package are as in a new process: none is compiled or loaded. No rehearsal is cut short by a busy machine."""
    from numba.core.dispatcher import Dispatcher

    monkeypatch.setattr(rehearsal, "_SECONDS", 10.0)
    rehearsal._rehearsed.clear()
    modules = [module for name, module in sys.modules.items() if name.startswith("bench_mtl.")]
    for function in {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}.values():
        function._reset_overloads()


@pytest.fixture
def larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Problem.examples` yields larger instances, but for a rehearsal."""
    for kind in REGISTRY.problems.values():
        rehearsal._examples(kind)
    for module in (tiny_data, *(sys.modules[kind.__module__] for kind in REGISTRY.problems.values())):
        if hasattr(module, "FEATURES"):
            monkeypatch.setattr(module, "FEATURES", 40)
    monkeypatch.setattr(tiny_data, "EXAMPLES", 60)
    monkeypatch.setattr(tiny_data, "SIZES", (50, 30, 45))


def instances(kind: type[Problem]) -> Iterator[Problem]:
    return kind.examples(np.random.default_rng(1))


def late(name: str, *, most: int, steps: int) -> list[str]:
    """What the variants of a solver compile while their clocks run, on at most so many instances of every problem."""
    found = []
    for solver in REGISTRY.solvers[name].variants():
        solver.warm_up()
        for kind in REGISTRY.problems.values():
            fitting = [problem for problem in instances(kind) if solver.incompatibility(problem) is None]
            for problem in fitting[:most]:
                record = run(problem, solver, tolerance=Tolerance(1e-7), limits=Limits(seconds=2.0, iterations=steps))
                if "compiled while the clock stood" in dict(record.info):
                    found.append(f"{solver.label} on {kind.name}: {dict(record.info)['compiled while the clock stood']}")
    return found


@pytest.mark.usefixtures("nothing_compiled", "larger")
@pytest.mark.parametrize("name", ["accelerated_gradient", "interior_point", "smoothed_gradient"])
def test_nothing_is_compiled_on_the_clock(name: str) -> None:
    assert late(name, most=2, steps=40) == []


SINGLE = """
from bench_mtl.data import synthetic_l1inf
from bench_mtl.engine.driver import run
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.pdhg import PDHG
PDHG().warm_up()
record = run(L1InfHinge(synthetic_l1inf(tasks=2, features=250, examples=250), radius=2.0), "pdhg", tolerance=1e-9, limits=600.0)
print(record.status, dict(record.info).get("compiled while the clock stood"))
"""


def test_nor_in_single_precision() -> None:
    """In which pdhg begins where data are large enough; in a process of its own, in which nothing is compiled yet."""
    assert subprocess.run([sys.executable, "-c", SINGLE], capture_output=True, text=True, check=True).stdout == "verified None\n"


def sparse_data(kind: str) -> TaskData:
    """Return data of a kind that no tiny instance has: sparse, with indices of 64 bits, many features, and rows of many tasks."""
    rng = np.random.default_rng(0)
    X: Any = sp.random_array((150, 400), density=0.1, rng=rng, format="csr")
    X = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    Y = X @ (rng.standard_normal((400, 12)) * (rng.random((400, 1)) < 0.1)) + 0.1 * rng.standard_normal((150, 12))
    return TaskData.shared(X, np.where(Y > 0.0, 1.0, -1.0) if kind == "labels" else Y)


@pytest.mark.usefixtures("nothing_compiled")
@pytest.mark.parametrize(
    ("solver", "make"),
    [
        ("l1_working_set", lambda: L1BallGLM(sparse_data("values"), penalty="0.05 max")),
        ("l1_working_set", lambda: L1BallGLM(sparse_data("labels"), loss="logistic", penalty="0.05 max")),
        ("accelerated_gradient", lambda: L1InfGLM(sparse_data("values"), penalty="0.1 max")),
        ("admm", lambda: SparseLowRank(sparse_data("values"), gamma=0.1, tau=10.0)),
    ],
    ids=["lasso", "logistic", "l1,inf", "sparse + low rank"],
)
def test_nor_on_sparse_data_of_many_tasks(solver: str, make: Callable[[], Problem]) -> None:
    problem = make()
    problem.warm_up()
    one = REGISTRY.solver(solver)
    one.warm_up()
    record = run(problem, one, tolerance=Tolerance(1e-7), limits=Limits(seconds=2.0, iterations=300))
    assert record.times.solve > 0.0, record.reason
    assert "compiled while the clock stood" not in dict(record.info)


@pytest.mark.usefixtures("nothing_compiled", "larger")
def test_without_rehearsal_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.engine.driver.rehearse", lambda *anything: None)
    monkeypatch.setattr(Problem, "warm_up", lambda self: None)
    assert late("smoothed_gradient", most=1, steps=5) != []


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_compiled", "larger")
@pytest.mark.parametrize("name", ITERATIVE)
def test_nothing_is_compiled_on_the_clock_of_any_solver(name: str) -> None:
    assert late(name, most=20, steps=200) == []


@pytest.mark.slow
def test_an_empty_cache_makes_no_timeout(tmp_path: Path) -> None:
    """A run of two seconds is verified on a machine where nothing has been compiled, and a second run compiles nothing more."""
    command = [
        sys.executable, "-m", "bench_mtl", "solve", "l1inf_hinge", "smoothed_gradient", "--data", "synthetic_l1inf",
        "--data-option", "features=20", "--param", "penalty=0.1", "--seconds", "2", "--target", "1e-3",
    ]  # fmt: skip
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    kept = []
    for _ in range(2):
        output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300).stdout
        assert "verified" in output, output
        kept.append({file.name: file.stat().st_size for file in tmp_path.rglob("*.nb?")})
    assert kept[0]
    assert kept[0] == kept[1]
