"""Whatever a plug-in does, the runs after it are the same, bit by bit, and nothing of it is left."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from runs import PLUGINS, run_suite, suite_of

from bench_mtl.runner import LocalExecutor, Setting
from bench_mtl.runner.confinement import landlock_version

#: One of each kind, of those that take least.
_SOME = [
    "pokes_memory",
    "kills_others",
    "writes_noughts",
    "swaps_descriptors",
    "outlives",
    "rounds_up",
    "rewrites_functions",
    "writes_results",
]
_SOME_HANDS = ["aliased", "huge"]

#: Deeds that need a system on which solvers may do nothing to other processes, or to the results.
_NEEDS = {
    "pokes_memory": 6, "writes_memory": 6, "opens_descriptors_of_others": 6, "stops_others": 6, "kills_others": 6, "kills_the_template": 6,
    "terminates_its_parents_group": 6, "queues_signals": 6,
    "writes_results": 1, "links_results": 1, "holds_the_lock": 1, "adds_a_report": 1,
}  # fmt: skip


def _everything() -> tuple[list[str], list[str]]:
    spec = importlib.util.spec_from_file_location("rogues", PLUGINS / "solvers" / "rogues.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["rogues"] = module
    spec.loader.exec_module(module)
    return sorted(module.DEEDS), sorted(module.HANDS)


def _honest(number: int) -> list[str]:
    """A solver of the package and one of the folder, of which no two cases are the same."""
    options = f"options = {{ initial_lipschitz = {number + 1} }}"
    return [f'name = "projected_gradient"\n{options}\nlabel = "honest {number}"', f'name = "upright"\noptions = {{ number = {number} }}']


def _run(folder: Path, rogues: list[str], honest: int) -> Any:
    """The honest runs, with a rogue one before all but the first two."""
    tables = _honest(0)
    for number in range(1, honest):
        tables += rogues[number - 1 : number] + _honest(number)
    suite = suite_of(*tables, limits="seconds = 0.5, off_clock_seconds = 3.0, iterations = 40")
    with LocalExecutor(Setting(1, PLUGINS, guarded=folder)) as executor:
        return run_suite(folder, suite, executor=executor)


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "all"])
def test_what_rogues_do_costs_nobody_else_anything(tmp_path: Path, whole: bool) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("finds the processes of the command in /proc")
    deeds, hands = _everything() if whole else (_SOME, _SOME_HANDS)
    deeds = [deed for deed in deeds if landlock_version() >= _NEEDS.get(deed, 0)]
    rogues = [f'name = "rogue"\noptions = {{ deed = "{deed}", folder = "{tmp_path / "with"}" }}' for deed in deeds]
    rogues += [f'name = "strange"\noptions = {{ hand = "{hand}" }}' for hand in hands]
    started = time.monotonic()
    runs = _run(tmp_path / "with" / "out", rogues, len(rogues) + 1)
    assert time.monotonic() - started < 10.0 + 8.0 * len(rogues), "no limit of a run is longer"
    alone = _run(tmp_path / "alone", [], len(rogues) + 1)
    honest = list(alone.index)
    assert len(runs) == len(honest) + len(rogues)
    for label in honest:
        for column in ("status", "reason", "primal", "dual", "iterations", "passes", "info"):
            assert runs.loc[label, column] == alone.loc[label, column], (label, _before(runs, label), column)
    rogue = runs.drop(honest)
    assert not (rogue["status"] == "verified").any(), rogue["status"].to_dict()
    assert (rogue["solve_seconds"].between(0.0, 4.0)).all()
    assert not [process for process in psutil.process_iter(["cmdline"]) if "123.25" in " ".join(process.info["cmdline"] or [])]
    assert sorted(path.name for path in (tmp_path / "with" / "out").iterdir()) == ["results.sqlite"]


def _before(runs: Any, label: str) -> str:
    place = list(runs.index).index(label)
    return " after " + ", ".join(runs.index[max(0, place - 2) : place])
