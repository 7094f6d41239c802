"""A solver that changes what is not its own harms nobody but itself."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from runs import PLUGINS, TINY, run_suite, solver, suite_of

from bench_mtl.runner import Executor, InlineExecutor, Setting

STEPS = "seconds = 20.0, iterations = 30"


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_changed_problem_proves_nothing_and_is_built_anew(
    tmp_path: Path, shared: AbstractContextManager[Executor], isolation: str
) -> None:
    suite = suite_of(
        'name = "projected_gradient"',
        solver("tamper", "deed", "sets", "unlocks", "remembers"),
        'name = "projected_gradient"\nlabel = "after"\noptions = { step_rule = "line_search" }',
        limits=STEPS,
    )
    executor = InlineExecutor(Setting(1, PLUGINS)) if isolation == "inline" else shared
    runs = run_suite(tmp_path, suite, executor=executor)
    changed = runs.loc[["tamper_sets", "tamper_unlocks"]]
    assert set(changed["status"]) == {"error"}
    assert set(changed["reason"]) == {"the solver has changed the problem, so that nothing it showed is proven"}
    assert changed["iterations"].isna().all()
    assert runs.loc["tamper_remembers", "status"] == "inaccurate"  # to remember what was computed is no change
    assert runs.loc["after", "status"] == "verified"
    assert runs.loc["after", "primal"] == pytest.approx(runs.loc["projected_gradient", "primal"], rel=1e-2)
    assert runs.loc["after", "dual"] == runs.loc["projected_gradient", "dual"]


def test_settings_of_the_whole_process_do_not_outlive_a_run(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    deeds = ["none", "alarm", "errstate", "warnings", "remembers"]
    suite = suite_of(
        solver("tamper", "deed", *deeds[:2]), solver("waits", "number", 1, pause=0.02), solver("tamper", "deed", *deeds[2:]), limits=STEPS
    )  # fmt: skip
    runs = run_suite(tmp_path, suite, executor=shared)
    assert runs.loc["waits_1", "status"] == "inaccurate"
    told = [runs.loc[f"tamper_{deed}", "info"] for deed in deeds]
    assert len(set(told)) == len(deeds)


def test_interrupts_and_nothing_yielded_are_errors(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    runs = run_suite(tmp_path, suite_of(solver("tamper", "deed", "interrupts", "none_yielded"), limits=STEPS), executor=shared)
    assert set(runs["status"]) == {"error"}
    assert runs.loc["tamper_interrupts", "reason"] == "KeyboardInterrupt"
    assert "must yield Iterate, not NoneType" in runs.loc["tamper_none_yielded", "reason"]
    assert (runs["wall_seconds"] < 2.0).all()


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_loss_serves_all_problems_and_cannot_be_changed(tmp_path: Path, shared: AbstractContextManager[Executor], isolation: str) -> None:
    problems = TINY.replace('"box"', '"l1inf_glm"').replace("bound = 0.5", 'radius = 1.0, loss = "logistic"')
    suite = suite_of('name = "accelerated_gradient"', solver("tamper", "deed", "loss"), problems=problems, limits=STEPS)
    executor = InlineExecutor(Setting(1, PLUGINS)) if isolation == "inline" else shared
    run = run_suite(tmp_path, suite, executor=executor).loc["tamper_loss"]
    assert run["status"] == "error"
    assert "attribute 'total' is read-only" in run["reason"]


def test_every_run_of_a_plug_in_has_a_process_of_its_own(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    suite = suite_of(
        solver("pid", "number", 0), solver("tamper", "deed", "none", "sets", "remembers"), solver("pid", "number", 1), limits=STEPS
    )  # fmt: skip
    runs = run_suite(tmp_path, suite, executor=shared)
    told = [json.loads(runs.loc[f"tamper_{deed}", "info"])["note"] for deed in ("none", "remembers")]
    own = [str(json.loads(runs.loc[f"pid_{number}", "info"])["pid"]) for number in (0, 1)]
    assert len({*told, *own}) == 4
