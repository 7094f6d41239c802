"""Cases in a worker process: hard limits, crashes, resume; every one ends as a row."""

from __future__ import annotations

import sqlite3
import time
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from bench_mtl.errors import InputError
from bench_mtl.registry import Registry
from bench_mtl.runner import run_cases
from bench_mtl.store import FILE_NAME, Outcome, Store
from bench_mtl.suite import Case, Suite, expand
from bench_mtl.suite_file import parse_suite
from bench_mtl.types import Record, Status

SUITE = """
name = "faults"
targets = [1e-2]
limits = {{ seconds = 6.0, memory_gib = 0.45 }}

[[problems]]
name = "l1inf_hinge"
label = "tiny"
data = {{ name = "synthetic_l1inf", tasks = 2, features = 5, examples = 6 }}
parameters = {{ radius = 1.0 }}

{solvers}
"""


def suite_of(*solvers: str) -> Suite:
    text = SUITE.format(solvers="\n".join(f"[[solvers]]\n{solver}" for solver in solvers))
    return parse_suite(tomllib.loads(text), text)


def test_every_fault_ends_as_a_row_and_the_suite_goes_on(tmp_path: Path, plugins: Path, faults: Registry) -> None:
    kinds = ["raises", "aborts", "sleeps", "allocates", "nan", "writes"]
    suite = suite_of(f'name = "faulty"\ngrid = {{ fault = {kinds} }}', 'name = "conic"', 'name = "accelerated_gradient"')
    taken: dict[str, float] = {}
    began = time.monotonic()

    def note(case: Case, outcome: Outcome) -> None:
        nonlocal began
        taken[case.solver_label] = time.monotonic() - began
        began = time.monotonic()

    with Store.create(tmp_path, suite) as store:
        run_cases(expand(suite, faults), store, plugins=plugins, on_outcome=note)
        runs = store.runs().set_index("solver_label")
        samples = store.samples().groupby("run_id").size()
    assert runs["status"].to_dict() == {
        "faulty_raises": "error", "faulty_aborts": "crashed", "faulty_sleeps": "timeout", "faulty_allocates": "memory",
        "faulty_nan": "error", "faulty_writes": "error", "clarabel": "verified", "accelerated_gradient": "skipped",
    }  # fmt: skip
    # What a solver had yielded before it was killed is kept.
    assert (samples.reindex(runs.loc[[f"faulty_{kind}" for kind in kinds], "id"]) >= 3).all()
    assert "signal 6" in runs.loc["faulty_aborts", "reason"]
    assert runs.loc["faulty_sleeps", "solve_seconds"] <= 6.0
    assert runs.loc["faulty_allocates", "peak_memory_mib"] > 450
    # A worker starts in a few seconds; the sleeper alone would take a minute.
    assert taken["faulty_sleeps"] < 25


def test_a_finished_suite_is_not_run_again_and_rows_equal(tmp_path: Path, faults: Registry) -> None:
    suite = suite_of('name = "conic"', 'name = "projected_subgradient"')
    cases = expand(suite, faults)
    with Store.create(tmp_path, suite) as store:
        run_cases(cases[:1], store)
        before = store.runs()
        run_cases(cases, store)
        after = store.runs()
        started: list[Case] = []
        run_cases(cases, store, on_start=started.append)
    assert not started
    assert after.iloc[:1].equals(before)
    assert len(after) == 2
    assert set(after["status"]) == {"verified"}


def test_a_problem_that_cannot_be_built_is_a_row(tmp_path: Path, faults: Registry) -> None:
    suite = suite_of('name = "conic"')
    text = suite.text.replace("radius = 1.0", "radius = -1.0")
    bad = parse_suite(tomllib.loads(text), text)
    with Store.create(tmp_path, bad) as store:
        run_cases(expand(bad, faults), store)
        row = store.runs().iloc[0]
    assert row["status"] == "error"
    assert "radius must be finite and at least 0" in row["reason"]


def test_another_suites_results_are_left_alone(tmp_path: Path) -> None:
    first, second = suite_of('name = "conic"'), suite_of('name = "projected_gradient"')
    Store.create(tmp_path, first).close()
    content = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(InputError, match="another version of this suite: choose another folder"):
        Store.create(tmp_path, second)
    assert (tmp_path / FILE_NAME).read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00" + b"\x00" * 200])
def test_a_damaged_store_is_refused_and_not_touched(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(InputError, match="not a readable results file"):
        Store.open(tmp_path)
    with pytest.raises(InputError, match="not a readable results file"):
        Store.create(tmp_path, suite_of('name = "conic"'))
    assert (tmp_path / FILE_NAME).read_bytes() == content


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    Store.create(tmp_path, suite_of('name = "conic"')).close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    connection.close()
    with pytest.raises(InputError, match=r"schema version 99, but this bench_mtl reads version 1"):
        Store.open(tmp_path)


def test_no_store_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bench-mtl run SUITE"):
        Store.open(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written"):
        Store.create(tmp_path / "file" / "below", suite_of('name = "conic"'))


@pytest.mark.parametrize("name", ["report.md", "runs.csv", "samples.csv", "tables", "figures"])
def test_a_folder_with_somebody_elses_report_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=f"holds {name} but no {FILE_NAME}"):
        Store.create(tmp_path, suite_of('name = "conic"'))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_two_runs_in_one_folder_are_told_so(tmp_path: Path, faults: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = suite_of('name = "conic"')
    (case,) = expand(suite, faults)
    outcome = Outcome(Record(Status.ERROR, "none"), {}, (), "")
    monkeypatch.setattr("bench_mtl.store._connect", lambda path: sqlite3.connect(path, timeout=0.0))
    with Store.create(tmp_path, suite) as store, Store.create(tmp_path, suite) as other:
        environment = store.add_environment({})
        store.add(case, outcome, environment)
        with pytest.raises(InputError, match=r"another run is using this folder \(UNIQUE"):
            other.add(case, outcome, environment)
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as blocker:
            blocker.execute("BEGIN EXCLUSIVE")
            for action in (lambda: other.add_environment({}), other.meta, other.runs, lambda: Store.open(tmp_path)):
                with pytest.raises(InputError, match="another run is using this folder") as error:
                    action()
                assert "move it away" not in str(error.value)
        assert len(store.runs()) == 1


def test_a_store_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with Store.create(tmp_path, suite_of('name = "conic"')) as store:
        store._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(InputError, match="cannot be read or written: attempt to write a readonly database"):
            store.add_environment({})


def test_folders_that_cannot_be_looked_at_are_refused(tmp_path: Path) -> None:
    for folder in (tmp_path / ("n" * 300), tmp_path / "a\0b"):
        with pytest.raises(InputError, match=r"output folder .* cannot be used"):
            Store.create(folder, suite_of('name = "conic"'))
        with pytest.raises(InputError, match=r"results folder .* cannot be used"):
            Store.open(folder)
