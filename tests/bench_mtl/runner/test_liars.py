"""Solvers that mean to deceive: none has a row that says more than is true, and none harms the runs after it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from runs import run_suite, suite_of

from bench_mtl.results import Store
from bench_mtl.runner import Executor, process

#: Of the issue that this comes from: four of these five once falsified the honest run after them, too.
REPORTED = ["instance_attribute", "class_attribute", "met_by", "own_certify", "weights"]

BOUNDS = [
    "class_objective", "gap", "everybodys_certify", "another_class", "memory", "numpy", "modules", "frame_samples", "garbage_collector",
]  # fmt: skip

MESSAGES = ["fake_messages", "void_and_again", "bomb", "half_a_message", "endless_message", "child"]

CLOCKS = ["perf_counter", "clock_in_the_frame", "clock_class", "idle", "thread", "everybodys_clocks"]

LIMITS = "seconds = 20.0, off_clock_seconds = 30.0"  # by which no deed ends


def runs_of(folder: Path, deeds: list[str], name: str, shared: AbstractContextManager[Executor], bomb: Path | None = None) -> Any:
    """The runs of the deeds in one suite, each followed by an honest solver of the package."""
    honest = 'name = "projected_gradient"\noptions = {{ step_rule = "line_search", initial_lipschitz = {} }}\nlabel = "{}"'
    tables = [honest.format(1.0, "before")]
    for number, deed in enumerate(deeds, 2):
        more = f', bomb = "{bomb}"' if deed == "bomb" else ""
        tables += [
            f'name = "{name}"\noptions = {{ deed = "{deed}"{more} }}\nlabel = "{deed}"',
            honest.format(float(number), f"after {deed}"),
        ]
        if name == "lies":
            tables.append(f'name = "lies"\noptions = {{ number = {number} }}\nlabel = "own after {deed}"')
    runs = run_suite(folder, suite_of(*tables, limits=LIMITS), executor=shared)
    before = runs.loc["before"]
    assert before["status"] == "verified", before["reason"]
    return runs


def require_honest(runs: Any, deeds: list[str]) -> None:
    """What comes after a deed, in the package's worker and in one of the liar's own, has the row that it has without."""
    before = runs.loc["before"]
    for deed in deeds:
        after = runs.loc[f"after {deed}"]
        assert (after["status"], after["dual"]) == ("verified", before["dual"]), (deed, after["reason"])
        assert after["primal"] == pytest.approx(before["primal"], rel=1e-2)


@pytest.mark.parametrize("deeds", [REPORTED, pytest.param(BOUNDS, marks=pytest.mark.slow)], ids=["reported", "others"])
def test_a_false_bound_is_found_out_and_harms_nobody(tmp_path: Path, shared: AbstractContextManager[Executor], deeds: list[str]) -> None:
    runs = runs_of(tmp_path, deeds, "lies", shared)
    before = runs.loc["before"]
    for deed in deeds:
        row = runs.loc[deed]
        assert row["status"] in ("wrong", "error"), (deed, row["status"], row["reason"])
        assert row["primal"] > 1.5 * before["primal"], "the zero point is far from the optimum"
        assert row["dual"] <= before["dual"] * (1 + 1e-12)
        own = runs.loc[f"own after {deed}"]
        assert (own["status"], own["primal"], own["dual"]) == ("inaccurate", row["primal"], before["dual"]), (deed, own["reason"])
    require_honest(runs, deeds)
    with Store.open(tmp_path) as store:
        samples = store.samples()
    said = samples[samples["run_id"].isin(runs.loc[deeds, "id"])]
    assert (said["relative_gap"] > 0.5).all(), "no report can use what they said"


def test_messages_are_data_and_a_false_one_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: AbstractContextManager[Executor]
) -> None:
    monkeypatch.setattr(process, "_AFTER_RECORD_SECONDS", 0.3)
    runs = runs_of(tmp_path, MESSAGES, "lies", shared, tmp_path / "bomb")
    for deed in MESSAGES:
        row = runs.loc[deed]
        assert row["status"] in ("wrong", "error", "crashed", "timeout", "inaccurate"), (deed, row["reason"])
        assert row["primal"] > 1.5 * runs.loc["before", "primal"]
    assert set(runs.loc[["fake_messages", "void_and_again"], "status"]) == {"wrong"}
    assert set(runs.loc[["bomb", "endless_message"], "status"]) == {"crashed"}
    assert not (tmp_path / "bomb").exists()
    require_honest(runs, MESSAGES)


def test_a_run_that_leaves_out_what_it_is_judged_by_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: AbstractContextManager[Executor]
) -> None:
    monkeypatch.setattr(process, "_TAKING_SECONDS", 1.0)
    monkeypatch.setattr(process, "_AFTER_RECORD_SECONDS", 0.3)
    ends = {
        "stays": "inaccurate",
        "shows_no_problem": "wrong", "never_starts": "crashed", "skips": "skipped", "begins_again": "crashed",
        "says_what_it_says_at_its_start": "crashed",
    }  # fmt: skip
    deeds = [*ends, "dies_with_a_false_deadline"]
    tables = [f'name = "lies"\noptions = {{ deed = "{deed}" }}\nlabel = "{deed}"' for deed in deeds]
    honest = 'name = "projected_gradient"\noptions = { step_rule = "line_search" }\nlabel = "after"'
    runs = run_suite(tmp_path, suite_of(*tables, honest, limits="seconds = 1.0, off_clock_seconds = 2.0"), executor=shared)
    statuses = runs["status"].to_dict()
    # Its deadline may be seen before its end is.
    assert statuses.pop("dies_with_a_false_deadline") in ("crashed", "error")
    assert statuses == {**ends, "after": "verified"}
    with Store.open(tmp_path) as store:
        samples = store.samples()
    said = samples[samples["run_id"].isin(runs.loc[deeds, "id"])]
    assert (said["relative_gap"] > 0.5).all(), "no report can use what they said"


def test_a_clock_that_leaves_out_work_is_found_out(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    runs = runs_of(tmp_path, CLOCKS, "hides", shared)
    for deed in CLOCKS:
        row = runs.loc[deed]
        assert row["status"] == "error", (deed, row["status"], row["reason"])
        if deed == "everybodys_clocks":  # which no clock of a run depends on
            assert row["reason"] == "the solver has changed time.monotonic, time.perf_counter, so that nothing it showed is proven"
            assert 0.5 < row["solve_seconds"] < 60.0
        else:
            assert any(words in row["reason"] for words in ("its clock is false", "the solver has changed bench_mtl.engine.clock.Clock"))
        assert row["solve_seconds"] >= 0.0
    require_honest(runs, CLOCKS)


def test_honest_work_on_the_clock_is_no_deed(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    tables = [f'name = "hides"\noptions = {{ seconds = {seconds} }}\nlabel = "{seconds}"' for seconds in (0.0, 0.4)]
    tables.append('name = "lies"\noptions = { deed = "works_before_it_runs" }\nlabel = "before"')
    tables.append('name = "lies"\noptions = { deed = "searches_for_the_case_in_warm_up" }\nlabel = "searches"')
    runs = run_suite(tmp_path, suite_of(*tables, limits=LIMITS), executor=shared)
    assert runs["status"].to_dict() == {"0.0": "verified", "0.4": "verified", "before": "inaccurate", "searches": "inaccurate"}
    assert runs.loc["before", "solve_seconds"] > 0.4, "what it takes to look at the problem is charged"
