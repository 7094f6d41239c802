"""Limits of time and memory hold whatever a solver does, and what is measured of a run is its own."""

import json
import re
from pathlib import Path

import psutil
import pytest
from runs import PLUGINS, TINY, Executing, lesser, problems, run_suite, solver, some_plugins, suite_of

from bench_mtl.engine.environment import thread_variables
from bench_mtl.results import Store
from bench_mtl.runner import LocalExecutor, Setting, watch

SOLVERS = '''
import time
from dataclasses import dataclass
from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Answer, OneShotSolver

@dataclass(frozen=True)
class Hangs(OneShotSolver):
    """Never comes back from a phase, or from the last of five tolerances."""
    hangs: str = "none"
    overruns: float = 0.0
    name = "hangs"
    requires = frozenset()
    tolerances = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)

    @property
    def label(self):
        return f"overruns_by_{self.overruns:g}" if self.overruns else f"hangs_in_{self.hangs}"

    @property
    def has_own_limit(self):
        return self.overruns > 0.0

    def warm_up(self):
        self._hang("warm_up")

    def build(self, problem):
        return self._hang("build") or problem

    def solve(self, program, tolerance, seconds):
        self._hang("solve")
        if self.hangs == "late":
            time.sleep(0.2 if tolerance > 1e-5 else 60.0)
        if self.overruns:  # its set-up, which its own limit does not count
            time.sleep(seconds * (1.0 + self.overruns))
        return Answer(Iterate(program.zero()), False, "the zero point", out_of_time=self.overruns > 0.0)

    def _hang(self, phase):
        while phase == self.hangs:
            pass

'''


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = some_plugins(tmp_path_factory.mktemp("limits"))
    (folder / "solvers" / "limits.py").write_text(SOLVERS)
    return folder


def test_no_phase_of_a_run_may_go_on_for_ever(tmp_path: Path, plugins: Path, slot: Executing) -> None:
    limits = "seconds = 0.4, off_clock_seconds = 0.4"
    hung = run_suite(tmp_path / "hung", suite_of(solver("hangs", "hangs", "build", "solve"), limits=limits), plugins, slot)
    assert set(hung["status"]) == {"timeout"}
    assert hung.loc["hangs_in_build", "reason"] == (
        "limit of 0.4 s for what is on no clock, killed while the model was built; nothing proven but the zero point"
    )
    during = r"time limit of 0.4 s, killed \d+(\.\d+)? s into tolerance \S+; nothing proven but the zero point"
    assert re.fullmatch(during, hung.loc["hangs_in_solve", "reason"])
    wall = lesser(hung, {"wall_seconds": 0.4 + 0.6}, lambda late: run_suite(
        tmp_path / "again", suite_of(solver("hangs", "hangs", *(label.removeprefix("hangs_in_") for label in late)), limits=limits),
        plugins, slot,
    ))  # fmt: skip
    assert wall["wall_seconds"].between(0.4, 0.4 + 0.6).all(), wall.to_dict()
    assert hung["primal"].notna().all()
    late = suite_of(solver("hangs", "hangs", "late", "none"), limits="seconds = 0.4, off_clock_seconds = 30.0")
    rows = run_suite(tmp_path / "late", late, plugins, slot)
    # The clock that its watcher sees begins anew at every tolerance; what the run has counted goes on, and is not false.
    assert rows.loc["hangs_in_late", "reason"].startswith("time limit of 0.4 s,")
    assert rows.loc["hangs_in_late", "relative_gap"] <= 1.0, "what it had shown before stays"
    assert rows["status"].tolist() == ["timeout", "inaccurate"]


def test_a_library_with_a_limit_of_its_own_hands_in_what_it_has(tmp_path: Path, plugins: Path, slot: Executing) -> None:
    """Its limit begins after its set-up; one whose set-up takes more than half the limit is killed."""
    solvers = [f'name = "hangs"\noptions = {{ overruns = {share} }}' for share in (0.3, 30.0)]
    limits = "seconds = 2.0"
    rows = run_suite(tmp_path, suite_of(*solvers, limits=limits), plugins, slot)
    assert rows["status"].tolist() == ["timeout", "timeout"]
    in_time, killed = rows.loc["overruns_by_0.3"], rows.loc["overruns_by_30"]
    assert in_time["reason"].startswith("time limit at tolerance 0.1, relative gap ")
    assert in_time["solve_seconds"] >= 2.6
    assert killed["reason"].startswith("time limit of 2 s, killed ")
    most = {"solve_seconds": 3.0 + 0.6}
    seconds = lesser(
        rows.loc[["overruns_by_30"]], most, lambda late: run_suite(tmp_path / "again", suite_of(solvers[1], limits=limits), plugins, slot)
    )
    assert seconds["solve_seconds"].between(3.0, most["solve_seconds"]).all(), seconds.to_dict()


@pytest.mark.parametrize("where", ["problem", "warm_up"])
def test_preparation_may_not_go_on_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugins: Path, slot: Executing, where: str
) -> None:
    tables = problems("broken", "fault", "hangs") if where == "problem" else TINY
    suite = suite_of(solver("hangs", "hangs", "warm_up" if where == "warm_up" else "none"), problems=tables)
    monkeypatch.setattr(watch, "PREPARATION_SECONDS", 0.3)
    runs = run_suite(tmp_path, suite, plugins, slot)
    assert runs["status"].tolist() == ["timeout"]
    assert runs["reason"].iloc[0].startswith("building the problem and compiling took more than 0.3 s, killed")


@pytest.mark.parametrize("threads", [1, 2])
def test_workers_have_processors_and_threads_of_their_own(tmp_path: Path, threads: int) -> None:
    available = sorted(psutil.Process().cpu_affinity())  # type: ignore[arg-type]
    if len(available) < 2:
        pytest.skip("one processor only")
    slots = 2 // threads
    tables = [f'name = "reports"\noptions = {{ number = {number}, seconds = 0.2 }}' for number in range(2 * slots)]
    suite = suite_of(*tables, top=f"threads = {threads}")
    runs = run_suite(tmp_path, suite, executor=LocalExecutor(Setting(threads, PLUGINS), slots))
    with Store.open(tmp_path) as store:
        (environment,) = store.environments()
    infos = [json.loads(text) for text in runs["info"]]
    places = {tuple(json.loads(info["processors"])) for info in infos}
    assert places == ({(available[-1],), (available[-2],)} if threads == 1 else {tuple(available[-2:])})
    for info in infos:
        assert {name: info[name] for name in thread_variables(threads)} == thread_variables(threads)
    assert (environment["threads"], environment["slots"], environment["isolation"]) == (threads, slots, "process")
