"""Whatever a solver or a problem does, it ends as a row with the right status, and the suite goes on."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from runs import (
    PLUGINS,
    TINY,
    cases_of,
    run_suite,
    runs_in,
    solver,
    some_plugins,
    suite_of,
)

from bench_mtl.results import Store
from bench_mtl.runner import Executor, InlineExecutor, Setting, run_cases


def test_faults_that_python_sees_are_rows(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    statuses = {
        "raises": "error", "nan": "error", "shape": "error", "type": "error", "writes": "error", "far": "inaccurate",
    }  # fmt: skip
    last = ['name = "silent"', 'name = "liar"', 'name = "projected_gradient"', 'name = "conic"']
    runs = run_suite(tmp_path, suite_of(solver("faulty", "fault", *statuses), *last), executor=shared)
    ended = {"silent": "error", "liar": "wrong", "projected_gradient": "verified", "clarabel": "skipped"}
    assert runs["status"].to_dict() == {f"faulty_{fault}": status for fault, status in statuses.items()} | ended
    reasons = runs["reason"]
    assert reasons["faulty_raises"] == "RuntimeError: two lines of trouble"
    assert "NaN" in reasons["faulty_nan"]
    assert "shape" in reasons["faulty_shape"]
    assert "read-only" in reasons["faulty_writes"]
    assert reasons["silent"] == "the solver yielded no iterate"
    assert "claims optimal" in reasons["liar"]
    assert runs.loc["faulty_far", "infeasibility"] > 1e6
    with Store.open(tmp_path) as store:
        places = {label: store.places().get(key, ()) for label, key in runs["id"].items()}
    # Where each left the code of its author; what returns a false answer, or nothing, has raised nothing there.
    assert {label: [(place.file, place.function) for place in found] for label, found in places.items() if found} == {
        f"faulty_{fault}": [("solvers/faulty.py", "Faulty.steps")] for fault in ("raises", "nan", "shape", "type", "writes")
    }
    assert places["faulty_raises"][0].source == r'raise RuntimeError("two lines\nof trouble")'
    assert places["faulty_type"][0].source.startswith('yield "not an iterate"')
    # What a solver yielded before its fault counts.
    faulty = runs[runs["solver"] == "faulty"]
    assert (faulty["relative_gap"] < 1).all()
    assert (faulty["iterations"] >= 2).all()


def test_what_raises_beyond_exceptions_is_a_row(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    later = {
        "exit": "error", "stop": "error", "memory": "memory", "surrogate": "error",
        "wordless": "error", "long": "error",
    }  # fmt: skip
    before = {"error": "error", "exit": "error", "memory": "memory"}
    runs = run_suite(
        tmp_path,
        suite_of(
            solver("odd_raise", "kind", *later, where="later"),
            solver("odd_raise", "kind", *before, where="warm_up"),
            solver("odd_raise", "kind", "error", "exit", where="incompatibility"),
        ),
        executor=shared,
    )
    expected = {f"later_{kind}": status for kind, status in later.items()} | {f"warm_up_{kind}": status for kind, status in before.items()}
    assert runs["status"].to_dict() == expected | {"incompatibility_error": "error", "incompatibility_exit": "error"}
    assert runs.loc["warm_up_error", "reason"] == "warm-up failed: RuntimeError: two lines of trouble"
    with Store.open(tmp_path) as store:
        files = {label: {place.file for place in store.places().get(key, ())} for label, key in runs["id"].items()}
    assert files == {label: {"solvers/odd.py"} if status == "error" else set() for label, status in runs["status"].items()}
    assert runs.loc["later_wordless", "reason"] == "WordlessError"
    assert "half a letter" in runs.loc["later_surrogate", "reason"]
    assert runs["reason"].str.len().max() < 1200


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_run_that_cannot_be_finished_is_a_row_and_the_suite_goes_on(
    tmp_path: Path, shared: AbstractContextManager[Executor], isolation: str
) -> None:
    """What ends `bench-mtl solve` with exit code 3 is in a suite the fault of one case."""
    executor = shared if isolation == "process" else InlineExecutor(Setting(1, PLUGINS))
    steps = [solver("odd_raise", "where", "later", "steps", "warm_up", "incompatibility", kind="incomplete"), 'name = "projected_gradient"']
    runs = run_suite(tmp_path, suite_of(*steps), executor=executor)
    assert runs["status"].to_dict() == {
        "later_incomplete": "error", "steps_incomplete": "error", "warm_up_incomplete": "error", "incompatibility_incomplete": "error",
        "projected_gradient": "verified",
    }  # fmt: skip
    assert runs["reason"].str.contains("IncompleteError: the cluster is gone").sum() == 4
    assert runs.loc["later_incomplete", "relative_gap"] < 1.0


#: What a one-shot solver answers, a step of an iterative one, why one does not fit, and which version it says it has: how its run ends.
ODD: dict[str, dict[str, tuple[str, str]]] = {
    "answer": {
        "info": ("Answer(zero, False, '', info=INFO)", "inaccurate"),
        "keys": ("Answer(zero, False, '', info={3: 4, None: 5})", "inaccurate"),
        "no_mapping": ("Answer(zero, False, '', info=7)", "error"),
        "setup": ("Answer(zero, False, '', setup_seconds=np.float32(1e9))", "inaccurate"),
        "nan_setup": ("Answer(zero, False, '', setup_seconds=math.nan)", "inaccurate"),
        "huge_info": ("Answer(zero, False, '', info={'k' * 10**6: 'v' * 10**6, **{f'entry {i}': i for i in range(10_000)}})", "inaccurate"),
        "huge_message": ("Answer(None, False, 'm' * 10**6)", "error"),
        "no_answer": ("None", "error"),
        "no_point": (r"Answer(None, True, '\ud800 no point')", "error"),
    },
    "step": {
        "numpy": ("Iterate(zero.primal, None, np.int64(1), np.float32(2.0))", "inaccurate"),
        "float32": ("Iterate(zero.primal.astype(np.float32), None, 1, 1.0)", "inaccurate"),
        "list": ("Iterate(zero.primal.tolist(), None, 1, 1.0)", "inaccurate"),
        "huge": ("Iterate(zero.primal, None, 10**30, 1.0)", "error"),
        "inf_work": ("Iterate(zero.primal, None, 1, math.inf)", "error"),
        "nan_step": ("Iterate(zero.primal, None, math.nan, 1.0)", "error"),
    },
    "unfit": {"true": ("True", "skipped"), "empty": ("''", "skipped"), "number": ("7", "skipped"), "surrogate": (r"'\ud800'", "skipped")},
    "version": {"changing": ("time.monotonic_ns()", "error"), "number": ("3", "inaccurate"), "none": ("None", "inaccurate")},
}  # fmt: skip

ODD_SOLVERS = """
import enum, math, time
from dataclasses import dataclass
import numpy as np
from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Answer, IterativeSolver, OneShotSolver

class Colour(enum.IntEnum):
    RED = 1

class Mute:
    def __str__(self):
        raise ValueError("no words")

INFO = {"function": print, "int": np.int64(3), "float": np.float64(0.5), "array": np.arange(3), "nan": math.nan, "enum": Colour.RED,
        "huge": 10**400, "surrogate": "\\ud800", "nul": "a\\0b", "nested": {"a": [1, {2}]}, "mute": Mute()}

class Odd:
    requires = frozenset()

    @property
    def label(self):
        return f"{self.name}_{self.kind}"

@dataclass(frozen=True)
class OddAnswer(Odd, OneShotSolver):
    kind: str
    name = "answer"
    tolerances = (1e-3,)

    def solve(self, program, tolerance, seconds):
        zero = Iterate(program.zero())
        return eval(ODD["answer"][self.kind][0], globals(), locals())

@dataclass(frozen=True)
class OddStep(Odd, IterativeSolver):
    kind: str
    name = "step"

    def steps(self, problem, start=None):
        zero = Iterate(problem.zero())
        yield eval(ODD["step"][self.kind][0], globals(), locals())

@dataclass(frozen=True)
class OddUnfit(OddStep):
    name = "unfit"

    def incompatibility(self, problem):
        return eval(ODD["unfit"][self.kind][0])

@dataclass(frozen=True)
class OddVersion(Odd, IterativeSolver):
    kind: str
    name = "version"

    @property
    def version(self):
        return eval(ODD["version"][self.kind][0])

    def steps(self, problem, start=None):
        yield Iterate(problem.zero())
"""


def test_odd_words_and_counts_are_rows(tmp_path: Path) -> None:
    plugins = some_plugins(tmp_path / "plugins")
    (plugins / "solvers" / "odd.py").write_text(f"{ODD_SOLVERS}\nODD = {ODD!r}\n")
    runs = run_suite(tmp_path / "out", suite_of(*(solver(name, "kind", *kinds) for name, kinds in ODD.items())), plugins)
    assert runs["status"].to_dict() == {f"{name}_{kind}": status for name, kinds in ODD.items() for kind, (_, status) in kinds.items()}
    info = json.loads(runs.loc["answer_info", "info"])
    assert (info["int"], info["float"], info["enum"]) == (3, 0.5, 1)
    assert "no words" in info["mute"]
    assert 0 <= runs.loc["answer_setup", "setup_seconds"] < 1
    assert (runs["solve_seconds"] >= 0).all()
    assert runs.loc["step_numpy", "passes"] == 2.0
    assert "not the one that the run was planned with" in runs.loc["version_changing", "reason"]
    info = json.loads(runs.loc["answer_huge_info", "info"])
    assert (len(info), info["entry 48"], info["k" * 1997 + "..."]) == (50, 48, "v" * 1997 + "...")
    assert 1900 < len(runs.loc["answer_huge_message", "reason"]) <= 2000
    assert (tmp_path / "out" / "results.sqlite").stat().st_size < 2**20, "endless words are cut"


def test_problems_that_break_are_rows(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    statuses = {
        "raises": "error", "exits": "error", "aborts": "crashed", "no_dimensions": "error", "nan": "error", "contradicts": "error",
        "dimensions": "verified", "notes": "verified", "none": "verified",
    }  # fmt: skip
    problems = "".join(
        TINY.replace('"box"', '"broken"').replace('"tiny"', f'"{fault}"').replace("bound = 0.5", f'fault = "{fault}"') for fault in statuses
    )
    run_suite(tmp_path, suite_of('name = "projected_gradient"', problems=problems), executor=shared)
    runs = runs_in(tmp_path).set_index("problem_label")
    assert runs["status"].to_dict() == statuses
    assert runs.loc["raises", "reason"] == "the problem cannot be built: RuntimeError: two lines of trouble"
    with Store.open(tmp_path) as store:
        (place,) = store.places()[runs.loc["raises", "id"]]
    assert (place.file, place.function) == ("problems/boxes.py", "Broken.__init__")
    assert place.source == r'raise RuntimeError("two lines\nof trouble")'
    assert "signal 6" in runs.loc["aborts", "reason"]
    assert json.loads(runs.loc["dimensions", "dimensions"]) == {"n": 5, "d": 5, "7": 8}


def test_a_problem_of_bad_parameters_is_a_row(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    problems = TINY.replace('"box"', '"l1inf_hinge"').replace("bound = 0.5", "radius = -1.0")
    runs = run_suite(tmp_path, suite_of('name = "conic"', problems=problems), executor=shared)
    assert runs.loc["clarabel", "status"] == "error"
    assert "radius must be finite and at least 0" in runs.loc["clarabel", "reason"]


def test_plugins_that_change_under_way_are_named(tmp_path: Path) -> None:
    plugins = some_plugins(tmp_path / "plugins", "faulty.py")
    suite = suite_of(solver("faulty", "fault", "raises"))
    cases = cases_of(suite, plugins)
    with (plugins / "solvers" / "faulty.py").open("a") as file:
        file.write("\n# changed\n")
    with Store.create(tmp_path / "out", suite) as store:
        run_cases(store.plan(cases), store, plugins=plugins)
        (run,) = store.runs().to_dict("records")
    assert run["status"] == "error"
    assert "code of the solver is not the one that the run was planned with" in run["reason"]


def test_plugins_that_no_longer_load_are_rows(tmp_path: Path) -> None:
    plugins = some_plugins(tmp_path / "plugins", "faulty.py")
    suite = suite_of(solver("faulty", "fault", "raises", "nan"))
    cases = cases_of(suite, plugins)
    (plugins / "solvers" / "faulty.py").write_text("raise OSError('gone')")
    with Store.create(tmp_path / "out", suite) as store:
        run_cases(store.plan(cases), store, plugins=plugins)
        runs = store.runs()
    assert runs["status"].tolist() == ["crashed", "crashed"]
    assert runs["reason"].str.contains("the worker died at its start").all()
    assert runs["reason"].str.contains("gone").all()
