"""The page of an instance: what it shows, and that its downloads are its rows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from shown_results import Page, fill, run

from bench_mtl.publish.instance_pages import instance_files, instances
from bench_mtl.report.render.shell import Markdown
from bench_mtl.results.loading import read_results

RUNS = (
    run("pg", 1.0, 2.0, seed=0, notes=["a note"]),
    run("scs", 3.0, None, kind="generic", seed=0, reason="time limit"),
    run("pg", 1.0, 2.0, seed=1),
)


def files_of(folder: Path) -> list[dict[str, bytes]]:
    results = read_results(folder)
    return [instance_files(results, "hand", "Hand", each, Markdown()) for each in instances(results)]


def test_an_instance_is_one_seed(tmp_path: Path) -> None:
    first, second = files_of(fill(tmp_path / "a", *RUNS))
    page = Page(next(content for path, content in first.items() if path.endswith(".html")))
    for words in (
        "lasso, seed 0", "n = 7 examples in all, d = 3, m = 2", "name = synthetic_l1inf", "radius = 1.0", "a note", "verified",
        "time limit", "the optimum lies between 0.9999500000 (by pg) and 1.000000000 (by pg)", "quick one",
        "not among the files of this site",
    ):  # fmt: skip
        assert words in page.text, words
    assert "seed 1" not in page.text
    assert set(first).isdisjoint(second)


def test_downloads_are_the_rows(tmp_path: Path) -> None:
    folder = fill(tmp_path / "a", *RUNS)
    runs = read_results(folder).runs
    (key, _), (first, _) = runs["instance_key"].unique(), files_of(folder)
    rows = list(csv.DictReader(io.StringIO(first[f"suites/hand/{key}.csv"].decode())))
    told = json.loads(first[f"suites/hand/{key}.json"])
    assert (told["suite"], told["instance"], len(told["environments"])) == ("hand", key, 1)
    assert told["enclosure"] == {"dual": 1 - 0.5e-4, "dual_solver": "pg", "primal": 1.0, "primal_solver": "pg", "agrees": True}
    of_key = runs[runs["instance_key"] == key].reset_index(drop=True)
    assert len(rows) == len(told["runs"]) == len(of_key) == 2
    for place, (row, one) in enumerate(zip(rows, told["runs"], strict=True)):
        for name in ("primal", "dual", "relative_gap", "solve_seconds"):
            assert float(row[name]) == one[name] == of_key[name][place]
        assert one["data"] == json.loads(row["data"]) == {"name": "synthetic_l1inf"}
        assert one["wall_seconds"] is None


def test_a_contradiction_comes_first(tmp_path: Path) -> None:
    (files,) = files_of(fill(tmp_path / "a", run("pg", 1.0, 2.0), run("scs", 1.0, 2.0, kind="generic", optimum=0.5)))
    page = next(content for path, content in files.items() if path.endswith(".html")).decode()
    assert '<p class="alarm" role="alert">CONTRADICTION on lasso' in page
    assert json.loads(next(content for path, content in files.items() if path.endswith(".json")))["enclosure"]["agrees"] is False


def test_an_instance_on_which_nothing_is_proven(tmp_path: Path) -> None:
    (files,) = files_of(fill(tmp_path / "a", run("scs", None, None, kind="generic", status="crashed", reason="signal 9")))
    page = Page(next(content for path, content in files.items() if path.endswith(".html")))
    assert "No run has proven anything of it." in page.text
    assert "signal 9" in page.text
