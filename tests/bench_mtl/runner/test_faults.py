"""Whatever a solver or a problem raises, answers or says of itself, it ends as a row with the right status, and the suite goes on."""

import json
from pathlib import Path

import pytest
from runs import PLUGINS, Executing, cases_of, problems, run_suite, solver, some_plugins, suite_of

from bench_mtl.results import Store
from bench_mtl.runner import InlineExecutor, LocalExecutor, Setting, run_cases

#: Where a solver raises what, and how its run ends.
RAISED = {
    "warm_up": {"error": "error", "exit": "error", "memory": "memory", "incomplete": "error"},
    "incompatibility": {"error": "error", "exit": "error", "incomplete": "error"},
    "steps": {"incomplete": "error"},
    "later": {"exit": "error", "memory": "memory", "incomplete": "error"},
}


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_what_is_raised_is_a_row_wherever_that_is(tmp_path: Path, shared: Executing, isolation: str) -> None:
    """What ends `bench-mtl solve` with exit code 3 is in a suite the fault of one case."""
    executor = shared if isolation == "process" else InlineExecutor(Setting(1, PLUGINS))
    tables = [solver("odd_raise", "kind", *kinds, where=where) for where, kinds in RAISED.items()]
    runs = run_suite(tmp_path, suite_of(*tables, 'name = "projected_gradient"'), executor=executor)
    ended = {f"{where}_{kind}": status for where, kinds in RAISED.items() for kind, status in kinds.items()}
    assert runs["status"].to_dict() == ended | {"projected_gradient": "verified"}
    assert runs.loc["warm_up_error", "reason"] == "warm-up failed: RuntimeError: two lines of trouble"
    assert runs["reason"].str.contains("IncompleteError: the cluster is gone").sum() == 4
    assert runs.loc["later_incomplete", "relative_gap"] < 1.0
    with Store.open(tmp_path) as store:
        files = {label: {place.file for place in store.places().get(key, ())} for label, key in runs["id"].items()}
    assert files == {label: {"solvers/odd.py"} if status == "error" else set() for label, status in runs["status"].items()}


#: What a one-shot solver answers, a step of an iterative one, and which version it says it has: how its run ends.
ODD: dict[str, dict[str, tuple[str, str]]] = {
    "answer": {
        "info": ("Answer(zero, False, '', info=INFO)", "inaccurate"),
        "no_mapping": ("Answer(zero, False, '', info=7)", "error"),
        "setup": ("Answer(zero, False, '', setup_seconds=np.float32(1e9))", "inaccurate"),
        "huge_info": ("Answer(zero, False, '', info={'k' * 10**6: 'v' * 10**6, **{f'entry {i}': i for i in range(10_000)}})", "inaccurate"),
        "huge_message": ("Answer(None, False, 'm' * 10**6)", "error"),
        "no_answer": ("None", "error"),
        "no_point": (r"Answer(None, True, '\ud800 no point')", "error"),
    },
    "step": {
        "numpy": ("Iterate(zero.primal, None, np.int64(1), np.float32(2.0))", "inaccurate"),
        "float32": ("Iterate(zero.primal.astype(np.float32), None, 1, 1.0)", "inaccurate"),
        "huge": ("Iterate(zero.primal, None, 10**30, 1.0)", "error"),
    },
    "asked": {"nan": ("math.nan", "crashed"), "zero": ("0.0", "crashed"), "words": ("'tight'", "crashed")},
    "version": {"changing": ("time.monotonic_ns()", "error"), "none": ("None", "inaccurate")},
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
class OddAsked(OddAnswer):
    name = "asked"

    @property
    def tolerances(self):
        return (eval(ODD["asked"][self.kind][0]),)

    def solve(self, program, tolerance, seconds):
        return Answer(Iterate(program.zero()), False, "")

@dataclass(frozen=True)
class OddStep(Odd, IterativeSolver):
    kind: str
    name = "step"

    def steps(self, problem, start=None):
        zero = Iterate(problem.zero())
        yield eval(ODD["step"][self.kind][0], globals(), locals())

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


def test_problems_that_break_are_rows(tmp_path: Path, shared: Executing) -> None:
    statuses = {
        "raises": "error", "exits": "error", "aborts": "crashed", "no_dimensions": "error", "nan": "error", "contradicts": "error",
        "dimensions": "verified", "notes": "verified", "none": "verified",
    }  # fmt: skip
    suite = suite_of('name = "projected_gradient"', problems=problems("broken", "fault", *statuses))
    runs = run_suite(tmp_path, suite, executor=shared).set_index("problem_label")
    assert runs["status"].to_dict() == statuses
    assert runs.loc["raises", "reason"] == "the problem cannot be built: RuntimeError: two lines of trouble"
    assert "signal 6" in runs.loc["aborts", "reason"]
    assert json.loads(runs.loc["dimensions", "dimensions"]) == {"n": 5, "d": 5, "7": 8}


def test_plugins_that_change_under_way_are_named(tmp_path: Path) -> None:
    plugins = some_plugins(tmp_path / "plugins", "faulty.py")
    suite = suite_of(solver("faulty", "fault", "raises"))
    cases = cases_of(suite, plugins)
    with (plugins / "solvers" / "faulty.py").open("a") as file:
        file.write("\n# changed\n")
    with Store.create(tmp_path / "out", suite) as store, LocalExecutor(Setting(1, plugins)) as executor:
        run_cases(store.plan(cases), store, executor=executor)
        (run,) = store.runs().to_dict("records")
    assert run["status"] == "error"
    assert "code of the solver is not the one that the run was planned with" in run["reason"]
