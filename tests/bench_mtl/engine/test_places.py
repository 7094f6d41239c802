"""Where an exception was raised: the author's own lines of code, without a path of this machine."""

from pathlib import Path
from typing import Any

import pytest
from yielding import SHORT

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Place, Status
from bench_mtl.engine.driver import run
from bench_mtl.engine.places import LONGEST_SOURCE, MOST_PLACES, place_text, places_of, traceback_lines
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.conic import Conic

SOLVER = """
from dataclasses import dataclass
import numpy as np
from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import IterativeSolver
from ._shared import deeper

@dataclass(frozen=True)
class Mine(IterativeSolver):
    fault: str = "none"
    depth: int = 0
    name = "mine"
    requires = frozenset()

    def __post_init__(self):
        if self.fault == "option":
            raise ValueError("no such luck")

    def incompatibility(self, problem):
        if self.fault == "incompatibility":
            {}["look"]

    def steps(self, problem, start=None):
        yield Iterate(problem.zero())
        if self.fault == "library":
            np.zeros(3) @ np.zeros(4)
        if self.fault == "ours":
            problem.objective(None)
        if self.fault == "deep":
            deeper(self.depth)
        if self.fault == "shape":
            yield Iterate(np.zeros(7), None, 1)
        if self.fault == "wraps":
            try:
                deeper(0)
            except RuntimeError as error:
                raise ValueError("wrapped") from error
        if self.fault == "property":
            class Odd(Exception):
                @property
                def __traceback__(self):
                    raise KeyboardInterrupt
            raise Odd
        if self.fault == "made":
            exec("1 / 0")
"""

SHARED = (
    """
def deeper(depth):
    if depth == 0:
        raise RuntimeError("at the bottom")  # """
    + "far " * 100
    + """
    deeper(depth - 1)
"""
)


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    folder = tmp_path_factory.mktemp("home")
    (folder / "solvers").mkdir()
    (folder / "solvers" / "mine.py").write_text(SOLVER)
    (folder / "solvers" / "_shared.py").write_text(SHARED)
    return load_registry(folder)


def line_of(text: str, of: str = SOLVER) -> int:
    """The number of the line that holds a text."""
    return of[: of.index(text)].count("\n") + 1


@pytest.mark.parametrize(
    ("fault", "source", "function"),
    [
        ("library", "np.zeros(3) @ np.zeros(4)", "steps"),
        ("ours", "problem.objective(None)", "steps"),
        ("shape", "yield Iterate(np.zeros(7), None, 1)", "steps"),
        ("incompatibility", '{}["look"]', "incompatibility"),
        ("wraps", 'raise ValueError("wrapped") from error', "steps"),
        ("made", 'exec("1 / 0")', "steps"),
    ],
)
def test_an_error_of_a_plug_in_names_its_own_last_line(mine: Registry, problem: L1InfHinge, fault: str, source: str, function: str) -> None:
    record = run(problem, mine.solver("mine", {"fault": fault}), limits=SHORT)
    assert record.status is Status.ERROR
    assert record.places == (Place("solvers/mine.py", line_of(source), f"Mine.{function}", source),)
    assert place_text(record.places) == f"solvers/mine.py:{line_of(source)}"
    assert traceback_lines(record.places) == [f"  solvers/mine.py:{line_of(source)}, in Mine.{function}", f"    {source}"]


def test_only_the_last_lines_are_kept_and_long_ones_are_cut(mine: Registry, problem: L1InfHinge) -> None:
    record = run(problem, mine.solver("mine", {"fault": "deep", "depth": 1}), limits=SHORT)
    assert [(place.file, place.function) for place in record.places] == [
        ("solvers/mine.py", "Mine.steps"), ("solvers/_shared.py", "deeper"), ("solvers/_shared.py", "deeper"),
    ]  # fmt: skip
    assert len(record.places[-1].source) == LONGEST_SOURCE
    record = run(problem, mine.solver("mine", {"fault": "deep", "depth": 30}), limits=SHORT)
    assert [place.function for place in record.places] == ["deeper"] * MOST_PLACES


def test_where_nothing_can_be_said_there_is_no_place(mine: Registry, problem: L1InfHinge) -> None:
    record = run(problem, mine.solver("mine", {"fault": "property"}), limits=SHORT)
    assert (record.status, record.places) == (Status.ERROR, ())
    assert (place_text(()), traceback_lines(())) == ("", [])
    assert places_of(ValueError("never raised")) == ()
    with pytest.raises(InputError, match="nowhere") as error:
        load_registry(Path("nowhere"))
    assert places_of(error.value) == (), "what runs solvers is no place"
    line = line_of("no such luck")
    with pytest.raises(InputError, match=rf"refuses its options: ValueError: no such luck \(solvers/mine\.py, line {line}\)$"):
        mine.solver("mine", {"fault": "option"})


def test_errors_of_what_is_shipped_name_its_files(problem: L1InfHinge, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no model")

    monkeypatch.setattr(L1InfHinge, "to_cvxpy", broken)
    record = run(problem, Conic(), limits=SHORT)
    assert record.status is Status.ERROR
    assert record.places[-1].file.startswith("bench_mtl/solvers/")
