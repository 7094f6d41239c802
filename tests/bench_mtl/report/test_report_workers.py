"""Runs on data in shards: what they sent, their speed-up by workers and its model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from audited import audited, iterative, run_of

from bench_mtl.report.contents import report_tables
from bench_mtl.results.loading import read_results

COUNTS = (1, 2, 4)

#: Repetitions scatter by these factors, whose median is 1.
SCATTER = (0.9, 1.0, 1.2)


def run(solver: str, workers: int, seconds: float, repetition: int = 0, again: int = 0, **more: Any) -> dict[str, Any]:
    info = {"rounds": 10, "messages": 20 * workers, "sent": 10240 * workers, "received": 5120, "again": again, "shards": 8}
    data = {"file": "many/shards.json", "workers": workers}
    samples = iterative(seconds, optimum=more.pop("optimum", 1.0), steps=more.pop("steps", 4))
    return run_of(f"many {workers}", solver, samples, repetition=repetition, data=data, radius=1.0, info=info, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A solver that shares 7 s of 10, one that is slower with more workers and ends elsewhere, one that gets there with one alone."""
    given = [run("pg", p, (7.0 / p + 3.0) * by, k, again=p - 1) for p in COUNTS for k, by in enumerate(SCATTER)]
    given += [run("cg", p, 1.0 + p, optimum=1.0 + 1e-9 * p) for p in (1, 2)]
    given += [run("md", 1, 3.0), run("md", 2, 60.0, status="timeout", steps=3)]
    given += [
        run_of("elsewhere", "pg", iterative(1.0), data={"file": "many/shards.json", "cluster": "tls://host:8786"}, info=given[0]["info"])
    ]
    given += [run_of("alone", "pg", iterative(1.0), info={"rounds": "many"})]
    return audited(tmp_path_factory.mktemp("workers") / "results", given)


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, pd.DataFrame]:
    return report_tables(read_results(folder))


def test_the_model_is_that_of_the_times(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["workers"].set_index("solver")
    assert list(table.index) == ["pg", "cg", "md"]
    pg = table.loc["pg"]
    assert (pg["points"], pg["fewest"], pg["most"], pg["seconds_fewest"], pg["seconds_most"]) == (3, 1, 4, 10.0, 4.75)
    assert pg["speed_up"] == pytest.approx(10.0 / 4.75)
    assert pg["speed_up_low"] < pg["speed_up"] < pg["speed_up_high"]
    assert pg["efficiency"] == pytest.approx(10.0 / 4.75 / 4.0)
    assert [pg["shared_seconds"], pg["fixed_seconds"]] == pytest.approx([7.0, 3.0])
    assert [pg["model_16"], pg["model_1000"]] == pytest.approx([3.4375, 3.007])
    assert pg["same_numbers"]


def test_the_model_says_nothing_where_it_does_not_fit(tables: dict[str, pd.DataFrame]) -> None:
    cg = tables["workers"].set_index("solver").loc["cg"]
    assert [cg["shared_seconds"], cg["fixed_seconds"]] == pytest.approx([-2.0, 4.0])
    assert cg[["model_16", "model_1000", "speed_up_low", "speed_up_high"]].isna().all()
    assert not cg["same_numbers"]


def test_a_count_that_did_not_get_there_is_no_point(tables: dict[str, pd.DataFrame]) -> None:
    md = tables["workers"].set_index("solver").loc["md"]
    assert md["points"] == 1
    assert md.drop(["sweep", "target", "points"]).isna().all()


def test_what_was_sent_is_by_round_and_by_pass(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["communication"].set_index(["problem", "solver"])
    pg = table.loc[("many 4", "pg")]
    assert (pg["workers"], pg["shards"], pg["runs"], pg["rounds"]) == (4, 8, 3, 10)
    assert (pg["messages_a_round"], pg["sent_a_round_kib"], pg["received_a_round_kib"], pg["again"]) == (8, 4.0, 0.5, 9)
    assert pg["a_pass_kib"] == pytest.approx(45.0 / 30.0)
    assert math.isnan(table.loc[("elsewhere", "pg"), "workers"])
    assert "alone" not in table.index.get_level_values("problem")


def test_workers_are_no_size_of_the_data(tables: dict[str, pd.DataFrame]) -> None:
    assert tables["scaling"].empty


def test_reports_without_shards_have_neither_table(tmp_path: Path) -> None:
    plain = audited(tmp_path / "plain", [run_of("alone", "pg", iterative(1.0))])
    assert not {"workers", "communication"} & report_tables(read_results(plain)).keys()


def test_the_report_shows_the_model_and_what_it_is_not(folder: Path) -> None:
    text = (folder / "report.md").read_text()
    assert "Model, 1,000 workers (s)" in text
    assert "is no measurement" in " ".join(text.split())
