"""`bench-mtl run`: what is run, resumed, chosen and run again, what is said of it, and what stands around it and changes nothing."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from commands import BOX, SOURCE, Command, document, line_of, refused, suite_of
from plugin_text import iterative

from bench_mtl.core.errors import InputError
from bench_mtl.data.fingerprint import Watch
from bench_mtl.data.readers import write_shards
from bench_mtl.results import FILE_NAME, Store
from bench_mtl.results.loading import read_results
from bench_mtl.runner import Setting, cluster

HINGE = BOX.replace('"box"', '"l1inf_hinge"') + "parameters = { radius = 1.0 }\n"
PARTS = BOX.replace('"tiny"', '"small"') + BOX.replace('"tiny"', '"large"').replace("tasks = 2", "tasks = 3") + "seeds = [0, 1]\n"
GLM = '[[problems]]\nname = "l1inf_glm"\ndata = {data}\nparameters = {{ penalty = "0.5 max" }}\n'
SEARCHING = '\n[[solvers]]\nname = "projected_gradient"\nlabel = "searching"\noptions = { step_rule = "line_search" }\n'


@pytest.fixture
def run(command: Command, plugins: Path) -> Command:
    """Runs the suite in this process, with further words."""
    return lambda *more: command("run", "tiny.toml", "--plugins", plugins, "--isolation", "inline", *more)


def rows(which: str = "IN") -> list[tuple[str, str, int | None, int]]:
    """Problem, solver, seed and repetition of the listed rows, or of those that are not."""
    with closing(sqlite3.connect(Path("results/tiny") / FILE_NAME)) as connection:
        query = f"SELECT problem_label, solver_label, seed, repetition FROM run WHERE id {which} (SELECT run_id FROM listing)"
        return sorted(connection.execute(query))


def test_a_suite_is_run_reported_and_resumed_and_no_other_takes_its_folder(command: Command) -> None:
    Path("tiny.toml").write_text(suite_of("conic", "projected_gradient", problems=HINGE))
    result = command("run", "tiny.toml", "--out", "out")
    assert result.code == 0, result.text
    assert "[1/2] tiny seed 0 | clarabel: verified" in result.text
    assert "[2/2] tiny seed 0 | projected_gradient: skipped" in result.text
    report = Path("out/report.md").read_text()
    assert "2 of 2 cases are done already" in command("run", "tiny.toml", "--out", "out").text
    Path("out/report.md").unlink()
    assert command("report", "out").code == 0
    assert Path("out/report.md").read_text() == report
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    Path("tiny.toml").write_text(Path("tiny.toml").read_text().replace('"tiny"', '"other"', 1))
    other = command("run", "tiny.toml", "--out", "out")
    assert (other.code, len(other.err)) == (2, 1)
    assert "already holds the results of suite 'tiny'" in other.err[0]
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before


def test_documents_have_what_waits_and_what_is_stored(run: Command) -> None:
    Path("tiny.toml").write_text(suite_of("projected_gradient", "pdhg"))
    waiting = document(run("--dry-run", "--json"))
    assert (waiting["cases"], [case["solver"] for case in waiting["waiting"]]) == (2, ["projected_gradient", "pdhg"])
    result = run("--json")
    assert (result.code, result.err) == (0, [])
    made = document(result)
    assert (made["suite"], made["made"], made["cases"], made["contradictions"]) == ("tiny", 2, 2, [])
    assert made["statuses"] == {"verified": 1, "skipped": 1}
    verified, skipped = made["runs"]
    assert (verified["solver"], verified["seed"], verified["repetition"], verified["target"]) == ("projected_gradient", 0, 0, 1e-2)
    assert (skipped["status"], skipped["objective"]) == ("skipped", None)
    assert made["report"] == ["results/tiny/report.html", "results/tiny/report.md"]
    again = document(run("--json"))
    assert (again["made"], again["runs"], again["contradictions"]) == (0, made["runs"], None)


@pytest.mark.usefixtures("without_report")
def test_the_exit_code_says_what_failed_and_that_nothing_fits(run: Command) -> None:
    Path("tiny.toml").write_text(suite_of("projected_gradient", "liar"))
    result = run()
    assert result.code == 1
    assert "liar: wrong (claims optimal" in result.text
    assert "runs failed (wrong, crashed or error)" in result.err[-1]
    Path("tiny.toml").write_text(suite_of("pegasos"))
    unfit = run("--out", "other", "--quiet")
    assert (unfit.code, unfit.out, unfit.err) == (1, [], ["no solver fits its problem: the run was skipped"])


def test_what_raises_has_a_place_and_its_lines_when_asked(run: Command, plugins: Path) -> None:
    broken = BOX.replace('"box"', '"broken"').replace('"tiny"', '"unbuilt"') + 'parameters = { fault = "raises" }\n'
    Path("tiny.toml").write_text(suite_of("faulty", problems=BOX + broken) + 'options = { fault = "raises" }\n')
    solver, problem = (line_of(plugins / file, "raise RuntimeError(") for file in ("solvers/faulty.py", "problems/boxes.py"))
    result = run()
    assert result.code == 1
    assert f"[1/2] tiny seed 0 | faulty_raises: error (RuntimeError: two lines of trouble, {solver})" in result.out[0]
    assert f"(the problem cannot be built: RuntimeError: two lines of trouble, {problem})" in result.out[1]
    assert SOURCE not in result.err
    result = run("--traceback", "--json")  # also where nothing is left to run
    assert result.code == 1
    assert result.err[:6] == [
        "tiny | faulty_raises: RuntimeError: two lines of trouble", f"  {solver}, in Faulty.steps", SOURCE,
        "unbuilt | faulty_raises: the problem cannot be built: RuntimeError: two lines of trouble",
        f"  {problem}, in Broken.__init__", SOURCE,
    ]  # fmt: skip
    assert [(place["function"], place["source"]) for each in document(result)["runs"] for place in each["places"]] == [
        ("Faulty.steps", SOURCE.strip()), ("Broken.__init__", SOURCE.strip()),
    ]  # fmt: skip
    assert f"  {problem}, in Broken.__init__\n{SOURCE}\n" in Path("results/tiny/report.md").read_text()


@pytest.mark.usefixtures("without_report")
def test_a_dry_run_says_what_waits_and_writes_nothing(run: Command) -> None:
    Path("tiny.toml").write_text(suite_of("projected_gradient", head="repeat_fastest = 1", problems=PARTS) + SEARCHING)
    dry = run("--only", "problem=la*", "--only", "solver=sea*", "--only", "solver=nothing", "--dry-run", "--quiet")
    assert (dry.code, dry.out) == (0, ["large seed 0 | searching", "large seed 1 | searching", "2 of 2 cases would be run"])
    assert run("--dry-run").out[-1] == "6 of 6 cases would be run, then the fastest solvers again"
    assert run("--only", "data=synthetic*", "--only", "seed=1", "--dry-run").out[-1] == "2 of 2 cases would be run"
    assert refused(run("--only", "problem=small", "--only", "seed=1")).endswith("no case fits problem=small and seed=1 together")
    assert not Path("results").exists()
    assert run("--only", "problem=small").code == 0
    assert run("--only", "problem=small", "--dry-run").out == ["0 of 2 cases would be run"]
    assert run("--only", "problem=small", "--dry-run", "--force").out[-1] == "2 of 2 cases would be run"


@pytest.mark.usefixtures("without_report")
def test_a_part_is_run_the_rest_goes_on_from_there_and_the_fastest_are_run_again_once(run: Command) -> None:
    Path("tiny.toml").write_text(suite_of("projected_gradient", head="repeat_fastest = 1", problems=PARTS) + SEARCHING)
    first = run("--only", "problem=small")
    assert first.code == 0, first.err
    assert [line.split("]")[0] for line in first.out[:2]] == ["[1/2", "[2/2"]
    assert rows() == [("small", "projected_gradient", 0, 0), ("small", "searching", 0, 0)]
    assert "the fastest solvers again" not in first.text, "cases are missing"
    assert read_results(Path("results/tiny")).missing == 4
    again = run("--only", "problem=small")
    assert "2 of 2 cases are done already" in again.out
    assert again.out[-1].startswith("nothing to run")
    assert run("--only", "problem=small", "--force").code == 0
    assert len(rows("NOT IN")) == 2
    last = run("--only", "problem=large")
    assert "the fastest solvers again" in last.text
    assert len({row[:3] for row in rows()}) == 6
    assert {row[0] for row in rows() if row[3]} == {"large"}
    assert run().code == 0
    kept = rows()
    assert {row[0] for row in kept if row[3]} == {"small", "large"}
    assert run().out[-1].startswith("nothing to run")
    assert rows() == kept


@pytest.mark.parametrize("by_variable", [False, True])
def test_workers_are_given_absolute_paths(command: Command, plugins: Path, monkeypatch: pytest.MonkeyPatch, by_variable: bool) -> None:
    Path("tiny.toml").write_text(suite_of("projected_gradient"))
    Path("plugins").symlink_to(plugins)
    Path("data").mkdir()
    settings: list[Setting] = []

    def note(setting: Setting, **_: object) -> None:
        settings.append(setting)
        raise InputError("that will do")

    monkeypatch.setattr("bench_mtl.cli.run.executor_for", note)
    if by_variable:
        monkeypatch.setenv("BENCH_MTL_DATA", "data")
    option = [] if by_variable else ["--data-dir", "data"]
    assert refused(command("run", "tiny.toml", "--plugins", "plugins", "--cluster", "local", *option)) == "bench-mtl: that will do"
    assert [(setting.plugins, setting.data_dir) for setting in settings] == [(Path.cwd() / "plugins", Path.cwd() / "data")]


def test_a_cluster_that_is_not_there_is_refused_and_so_are_words_that_do_not_go_together_where_all_is_done(
    command: Command, run: Command, plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 0.2)
    Path("tiny.toml").write_text(suite_of("silent"))
    line = refused(command("run", "tiny.toml", "--plugins", plugins, "--cluster", "tcp://127.0.0.1:1"))
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in line
    assert not Path("results").exists()
    run()
    assert "neither --slots nor --cluster goes with it" in refused(run("--slots", "2"))


def test_a_report_is_written_again_where_changes_may_wait(run: Command) -> None:
    Path("tiny.toml").write_text(suite_of("projected_gradient"))
    assert run("--out", "out").code == 0
    report, results = Path("out/report.md"), Path("out") / FILE_NAME
    report.write_text("an old report")
    os.utime(report, (results.stat().st_mtime + 1000,) * 2)
    assert run("--out", "out").out[-1] == "nothing to run; report: out/report.md"
    assert report.read_text() == "an old report"
    with closing(sqlite3.connect(results)) as somebody:
        somebody.execute("PRAGMA journal_mode = WAL")
        somebody.execute("CREATE TABLE other (id)")  # waits in the WAL as long as this is open
        somebody.commit()
        assert results.with_name(f"{FILE_NAME}-wal").exists()
        os.utime(report, (results.stat().st_mtime + 1000,) * 2)
        assert run("--out", "out").out[-1] == "report: out/report.html, out/report.md"
    assert report.read_text() != "an old report"


def test_a_run_needs_no_streams_no_backend_of_figures_and_no_module_of_the_current_folder(here: Path) -> None:
    data = '{ name = "synthetic_glm", features = 4, examples = 20 }'
    Path("tiny.toml").write_text(suite_of("accelerated_gradient", problems=GLM.format(data=data)))
    Path("sitecustomize.py").write_text(f"open({str(here / 'imported')!r}, 'w').close()\n")
    words = ["sh", "-c", 'exec "$@" <&- >&-', "sh", sys.executable, "-m", "bench_mtl", "run", "tiny.toml", "--out", "out"]
    environment = {**os.environ, "MPLBACKEND": "nonsense"}
    ended = subprocess.run(words, cwd=here, env=environment, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    for name in (FILE_NAME, "report.md", "runs.csv", "tables/summary.tex"):
        assert Path("out", name).is_file(), name
    assert {path.suffix for path in Path("out/figures").iterdir()} == {".svg", ".png", ".pdf", ".csv"}
    assert not Path("imported").exists()


def test_data_in_blocks_are_solved_by_workers(command: Command) -> None:
    data = '{ name = "blocks_sparse", folder = "kept", examples = 600, features = 20, nonzeros = 4, tasks = 2, shard_rows = 200 }'
    Path("tiny.toml").write_text(suite_of("accelerated_gradient", problems=GLM.format(data=data)))
    Path("kept").mkdir()
    result = command("run", "tiny.toml", "--json")
    assert (result.code, result.err) == (0, [])
    assert document(result)["statuses"] == {"verified": 1}
    assert [path.name.partition("-")[0] for path in Path("kept").glob("blocks*")] == ["blocks_sparse"]


#: A solver that writes other numbers over the features of its problem.
SCRIBE = iterative(
    "scribe",
    'yield Iterate(problem.start_point())\nnp.save("set/00000.npy", 2.0 * np.load("set/00000.npy"))\n'
    "yield Iterate(problem.start_point(), step=1)",
    more="requires = frozenset({Capability.PROX})\ntakes_shards = True",
)


def test_rows_of_data_that_changed_while_they_were_made_are_void(command: Command, here: Path) -> None:
    rng = np.random.default_rng(0)
    manifest = write_shards(here / "set", [(rng.standard_normal((9, 3)), rng.standard_normal((9, 2)))])
    features = manifest.parent / "00000.npy"
    before = features.read_bytes()
    (here / "plugins" / "solvers").mkdir(parents=True)
    (here / "plugins" / "solvers" / "scribe.py").write_text(SCRIBE)
    for solver in ("scribe", "accelerated_gradient"):
        Path(f"{solver}.toml").write_text(suite_of(solver, problems=GLM.format(data='{ file = "set/shards.json" }')))
    result = command("run", "scribe.toml", "--out", "out", "--plugins", "plugins", "--isolation", "inline")
    assert result.code == 3, result.text
    assert f"{features} has changed while " in result.err[-1]
    with Store.open(here / "out") as store:
        assert not store.finished()
    assert "00000.npy is not what was written" in refused(command("run", "accelerated_gradient.toml", "--isolation", "inline"))
    features.write_bytes(before)
    watch = Watch([{"file": str(manifest)}, {"name": "digits"}, {"name": "no such set"}], None)
    assert watch.changed() == []
    os.utime(features, ns=(0, 0))  # the same bytes
    assert watch.changed() == []
    features.unlink()
    assert watch.changed() == [features]
