"""Whatever a solver or a problem does, it ends as a row with the right status, and the suite goes on."""

from __future__ import annotations

import json
import tomllib
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from runs import (
    PLUGINS,
    TINY,
    await_that,
    cases_of,
    is_running,
    run_suite,
    runs_in,
    solver,
    some_plugins,
    started_here,
    suite_of,
)

from bench_mtl.engine.suite_file import parse_suite
from bench_mtl.results import Store
from bench_mtl.runner import Executor, InlineExecutor, Setting, process, run_cases, watch


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


def test_deaths_are_rows_and_keep_the_samples_before_them(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    words = {
        "aborts": "signal 6 (SIGABRT)",
        "segfaults": "signal 11 (SIGSEGV)",
        "exits_at_once": "exit code 7",
        "kills_itself": "signal 9 (SIGKILL)",
        "closes_files": "exit code 1",
    }
    runs = run_suite(tmp_path, suite_of(solver("faulty_process", "fault", *words), 'name = "projected_gradient"'), executor=shared)
    for fault, reason in words.items():
        assert runs.loc[fault, "status"] == "crashed"
        assert runs.loc[fault, "reason"] == f"the solver's process died: {reason}"
    assert runs.loc["projected_gradient", "status"] == "verified"
    assert "Segmentation fault" in json.loads(runs.loc["segfaults", "info"])["output"]
    with Store.open(tmp_path) as store:
        samples = store.samples().groupby("run_id").size()
    assert (samples.reindex(runs.loc[list(words), "id"]) == 3).all()


def test_what_raises_beyond_exceptions_is_a_row(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    later = {
        "exit": "error", "interrupt": "error", "stop": "error", "memory": "memory", "surrogate": "error",
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


def test_odd_words_and_counts_are_rows(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    answers = {
        "info": "inaccurate", "mute_info": "inaccurate", "keys": "inaccurate", "no_mapping": "error", "setup": "inaccurate",
        "nan_setup": "inaccurate", "no_answer": "error", "no_point": "error",
    }  # fmt: skip
    steps = {
        "numpy": "inaccurate", "float32": "inaccurate", "list": "inaccurate", "huge": "error", "negative": "error", "nan_work": "error",
        "inf_work": "error", "nan_step": "error", "inf_step": "error", "text": "error", "no_iterator": "error",
    }  # fmt: skip
    sentences = ["true", "empty", "number", "word", "surrogate"]
    versions = {"changing": "error", "number": "inaccurate", "none": "inaccurate"}
    runs = run_suite(
        tmp_path,
        suite_of(
            solver("odd_answer", "kind", *answers),
            solver("odd_step", "kind", *steps),
            solver("odd_incompatibility", "words", *sentences),
            solver("odd_version", "kind", *versions),
        ),
        executor=shared,
    )
    expected = {f"answer_{kind}": status for kind, status in answers.items()} | {f"step_{kind}": status for kind, status in steps.items()}
    expected |= {f"unfit_{words}": "skipped" for words in sentences} | {f"version_{kind}": status for kind, status in versions.items()}
    assert runs["status"].to_dict() == expected
    info = json.loads(runs.loc["answer_info", "info"])
    assert (info["numpy_int"], info["numpy_float"], info["enum"], info["word"]) == (3, 0.5, 1, "word")
    assert "no words" in json.loads(runs.loc["answer_mute_info", "info"])["mute"]
    assert 0 <= runs.loc["answer_setup", "setup_seconds"] < 1
    assert (runs["solve_seconds"] >= 0).all()
    assert runs.loc["step_numpy", "passes"] == 2.0
    assert "not the one that the run was planned with" in runs.loc["version_changing", "reason"]


def test_endless_words_are_cut(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    runs = run_suite(
        tmp_path, suite_of(solver("odd_answer", "kind", "huge_info", "huge_message"), 'name = "projected_gradient"'), executor=shared
    )
    assert runs["status"].tolist() == ["inaccurate", "error", "verified"]
    info = json.loads(runs.loc["answer_huge_info", "info"])
    assert len(info) == 50
    text = info["k" * 1997 + "..."]
    assert text == "v" * 1997 + "..."
    assert info["entry 48"] == 48
    assert 1900 < len(runs.loc["answer_huge_message", "reason"]) <= 2000
    assert (tmp_path / "results.sqlite").stat().st_size < 2**20


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


@pytest.mark.parametrize("last", ["ends", "hangs"])
def test_what_a_solver_starts_is_dead_soon_after_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: AbstractContextManager[Executor], last: str
) -> None:
    if last == "hangs":
        monkeypatch.setattr(watch, "GRACE_SECONDS", 0.1)
    forks = ["forks", "forks_in_a_session", "forks_twice", "starts_a_program", "starts_a_program_of_another_environment"]
    statuses = dict.fromkeys(forks, "inaccurate")
    if last == "hangs":
        statuses = {
            "forks_and_loops": "timeout",
            "starts_a_program_of_another_environment_and_loops": "timeout",
            "forks_and_aborts": "crashed",
        }
    tables = []
    for fault in statuses:
        (tmp_path / fault).mkdir()
        tables.append(solver("faulty_process", "fault", fault, folder=str(tmp_path / fault)))
    suite = suite_of(*tables, limits="seconds = 0.4" if last == "hangs" else "seconds = 30.0")
    started: dict[str, list[int]] = {}
    survived: dict[str, bool] = {}

    def look(case: object, _: object) -> None:
        fault = case.solver_label  # type: ignore[attr-defined]
        started[fault] = [int(file.stem) for file in (tmp_path / fault).glob("*.pid")]
        survived[fault] = not await_that(lambda: not any(map(is_running, started[fault])), 2.0)

    runs = run_suite(tmp_path / "out", suite, executor=shared, on_outcome=look)
    assert runs["status"].to_dict() == statuses
    assert all(len(pids) == 1 for pids in started.values()), started
    assert not any(survived.values()), survived


def test_a_process_that_is_always_another_is_dead_after_the_run(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    before = started_here()
    runs = run_suite(tmp_path / "out", suite_of(solver("faulty_process", "fault", "flees", folder=str(tmp_path / "pids"))))
    assert started_here() <= before
    assert runs["status"].tolist() == ["inaccurate"]
    assert list((tmp_path / "pids").iterdir())


def test_a_process_that_can_no_longer_be_reached_is_given_up_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: AbstractContextManager[Executor]
) -> None:
    folder = tmp_path / "pids"
    folder.mkdir()
    monkeypatch.setattr(process, "_EXIT_SECONDS", 0.2)
    table = solver("faulty_process", "fault", "closes_files_and_loops", folder=str(folder))
    runs = run_suite(tmp_path / "out", suite_of(table, 'name = "projected_gradient"'), executor=shared)
    (pid,) = [int(file.stem) for file in folder.glob("*.pid")]
    assert runs["status"].tolist() == ["crashed", "verified"]
    assert runs["reason"].iloc[0] == "the solver's process died: it no longer answers"
    assert runs["wall_seconds"].iloc[0] < 1.0
    assert not is_running(pid)


def test_a_child_that_goes_on_with_the_run_does_not_speak_for_it(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    suite = suite_of(solver("faulty_process", "fault", "both_go_on"), 'name = "projected_gradient"')
    runs = run_suite(tmp_path, suite, executor=shared)
    assert runs["status"].to_dict() == {"both_go_on": "inaccurate", "projected_gradient": "verified"}
    with Store.open(tmp_path) as store:
        samples = store.samples()
    assert samples[samples["run_id"] == runs.loc["both_go_on", "id"]]["iteration"].tolist() == list(range(6))


def test_an_interrupt_is_not_for_the_worker(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    runs = run_suite(tmp_path, suite_of(solver("faulty_process", "fault", "interrupts")), executor=shared)
    assert runs.loc["interrupts", "status"] == "inaccurate"
    assert runs.loc["interrupts", "iterations"] == 5


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


def test_faults_that_python_sees_are_rows_without_a_process_of_their_own_too(tmp_path: Path) -> None:
    text = suite_of(
        solver("faulty", "fault", "raises", "nan", "shape", "type", "writes", "far"),
        solver("odd_raise", "kind", "exit", "memory", "wordless", where="warm_up"),
        'name = "liar"',
    ).text
    suite = parse_suite(tomllib.loads(text), text)
    runs = run_suite(tmp_path, suite, executor=InlineExecutor(Setting(1, PLUGINS)))
    assert runs["status"].tolist() == ["error"] * 5 + ["inaccurate", "error", "memory", "error", "wrong"]
