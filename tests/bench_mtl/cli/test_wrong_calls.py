"""A table of mistakes: each is one line that names the argument and, where there is one, the nearest name; the command exits with 2."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from commands import BOX, SMALL, Command, refused, suite_of, table_of_flowers

from bench_mtl import InputError, Limits, TaskData, load_registry, projections, run
from bench_mtl.engine.suite import expand
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.results import FILE_NAME

LONG = "n" * 300

#: Calls that would be right.
SOLVE = ("solve", "l1inf_hinge", "pdhg", "--data", "digits", "--param", "radius=1")
SHARD = ("shard", "own.csv", "--out", "new")
PATH = ("path", "l1inf_hinge", "projected_subgradient", *SMALL, "--over")

#: Words of a command, and what the one line says.
COMMANDS: list[tuple[tuple[str, ...], str]] = [
    # Commands and options
    (("slove",), "Did you mean 'solve'"),
    (("run", "quick", "--onyl", "solver=pdhg"), "'--only'"),
    (("run", "quick", "--slots", "0"), "--slots must be a whole number of at least 1, not 0"),
    (("run", "quick", "--slots", "99999", "--out", "out"), "99999 slots of 1 thread need 99999 processors, but this process may use"),
    (("run", "quick", "--isolation", "inlin"), "'inlin' is not one of 'process', 'inline': did you mean 'inline'?"),
    (("run", "quick", "--isolation", "inline", "--slots", "2"), "neither --slots nor --cluster goes with it"),
    (("run", "quick", "--isolation", "inline", "--cluster", "local"), "neither --slots nor --cluster goes with it"),
    (("run", "quick", "--cluster", " "), "--cluster is local"),
    (("run", "file.txt"), "suite file file.txt cannot be read"),
    (("run", "quick", "--out", "file.txt"), "--out: file.txt is not a folder"),
    (("run", "quick", "--out", ""), "a path must not be empty"),
    (("run", "quick", "--out", LONG), "cannot be used"),
    (("run", "quick", "--plugins", "nowhere"), "plug-in folder nowhere does not exist"),
    (("run", "quick", "--only", "solver=pdgh"), "--only: no case has a solver like pdgh: did you mean 'pdhg'?"),
    (("run", "quick", "--only", "colour=red"), "--only must be KEY=PATTERN with a key of problem, family, solver, seed, repetition, data"),
    (("list", "solver"), "'solver' is not one of 'problems', 'solvers', 'suites', 'data': did you mean 'solvers'?"),
    (("list", "data", "--data-dir", "file.txt"), "data directory"),
    (("compare", "nowhere", "nowhere"), "no results in nowhere"),
    (("compare", "nowhere", "nowhere", "--threshold", "-1"), "--threshold must be finite and at least 0, not -1"),
    (("export", "nowhere"), "no results in nowhere"),
    (("export", "nowhere", "--format", "parket"), "'parket' is not one of 'parquet', 'csv': did you mean 'parquet'?"),
    (("merge", "nowhere", "-o", "new"), "merge needs at least two results folders"),
    (("merge", "nowhere", "./nowhere", "-o", "new"), "merge: the folder nowhere is given twice"),
    (("check", "nowhere"), "no results in nowhere"),
    (("check", "nowhere", "--data-dir", "nowhere"), "are for --recertify"),
    (("publish", "nowhere", "--out", "site", "--plugins", "nowhere"), "are for --instances"),
    (("publish", "nowhere", "--out", "site", "--jobs", "0"), "--jobs must be a whole number of at least 1"),
    (("publish", "nowhere", "--out", "site", "--title", " "), "--title must be"),
    (("report", "nowhere"), "no results in nowhere"),
    (("report", "nowhere", "--format", "htm"), "not 'htm': did you mean 'html'?"),
    (("report", "nowhere", "--target", "2"), "--target must be above 0 and at most 1, not 2"),
    (("report", "nowhere", "--select", "solvr=pdhg"), "did you mean 'solver'?"),
    (("report", "nowhere", "--check", "--target", "0.1"), "No such option"),
    (("report", "index", "nowhere", "--check"), "No such option"),
    (("report", "check", "nowhere"), "has no report.md to check"),
    (("report", "nowhere", "--index"), "is no folder of reports"),
    (("validate", "--cases", "0"), "--cases must be a whole number of at least 1, not 0"),
    (("validate", "--only", "pegasus"), "unknown problem, solver or projection 'pegasus': did you mean 'pegasos'?"),
    (("doctor", "--plugins", "nowhere"), "plug-in folder nowhere does not exist"),
    (("certify", "model.py:problm"), "unknown problem of model.py 'problm': did you mean 'problem'"),
    (("certify", "model.py"), "the model must be FILE.py:NAME"),
    (("certify", "model.py:problem", "--option", "solver=SCS"), "--option solver is none of the solver"),
    (("certify", "l1inf_hinge", "nowhere.npz", "--data", "digits", "--param", "radius=1"), "nowhere.npz: no such file"),
    (("certify", "l1inf_hinge"), "COEFFICIENTS and --data of 'l1inf_hinge' must be given: bench-mtl certify PROBLEM COEFFICIENTS --data"),
    (("certify", "l1inf_hinge", "nowhere.npz"), ": --data of 'l1inf_hinge' must be given"),
    (("certify", "l1inf_hinge", "--data", "digits"), ": COEFFICIENTS of 'l1inf_hinge' must be given"),
    (("certify", "model.py:problem", "own.npz", "--data", "digits"), "COEFFICIENTS and --data are for a problem of bench-mtl"),
    (("certify", "l1inf_hinge", "own.npz", "--data", "digits", "--judge", "answer"), "--judge, --bound and --gp are for models of CVXPY"),
    (("certify", "l1inf_hinge", "own.npz", "--data", "digits", "--solver", "pdgh"), "unknown solver 'pdgh': did you mean 'pdhg'?"),
    (("certify", "l1inf_hinge", "own.npz", "--data", "digits", "--threads", "99999"), "the processors that this process may use"),
    (("certify", "l1inf_hinge", "own.npz", "--data", "digits", "--plugins", "nowhere"), "plug-in folder nowhere does not exist"),
    (("certify", "l1inf_hinge", "file.txt", "--data", "digits", "--param", "radius=1"), "file.txt: not readable as an array of NumPy: "),
    (("certify", "nowhere.py:problem"), "there is no file nowhere.py"),
    (("certify", "model.py:problem", "--param", "radius=1"), "--param is for a problem and its --data"),
    (("certify", "model.py:problem", "--seed", "1", "--param", "radius=1"), "--seed is for a problem and its --data"),
    (("certify", "bad.py:problem"), "bad.py does not run: ZeroDivisionError: division by zero"),
    (("certify", "model.py:problem", "--bound", "y=1"), "unknown variable 'y'"),
    (("certify", "model.py:problem", "--solver", "NOBODY"), "CVXPY refuses the model"),
    ((*SHARD[:2], "--out", "."), ". exists: shards are written to a new folder"),
    ((*SHARD, "--megabytes", "1e305"), "megabytes must be above 0 and at most"),
    ((*SHARD, "--data-option", "label=red"), "'label': did you mean 'labels'?"),
    ((*SHARD, "--name", "a\tb"), "name must be visible characters on one line"),
    (("shard", "digts", "--out", "new"), "unknown data 'digts': did you mean 'digits'?"),
    (("skill", "--install", "file.txt/below"), "--install: the instructions cannot be written to file.txt/below"),
    # One problem and one solver
    (("solve", "l1inf_hinge"), "Missing argument 'SOLVER"),
    (("solve", "L1INF_HING", *SOLVE[2:]), "unknown problem 'L1INF_HING': did you mean 'l1inf_hinge'? allowed: "),
    (("solve", "l1inf_hinge", "pdgh", *SOLVE[3:]), "unknown solver 'pdgh': did you mean 'pdhg'? allowed: "),
    ((*SOLVE, "--option", "step_rul=norm"), "unknown option of solver 'pdhg' 'step_rul': did you mean 'step_rule'?"),
    ((*SOLVE, "--option", "=norm"), "--option must be KEY=VALUE, not '=norm'"),
    ((*SOLVE, "--param", "radius"), "--param must be KEY=VALUE, not 'radius'"),
    ((*SOLVE, "--param", "radius=2"), "--param radius is given twice"),
    ((*SOLVE[:5], "--param", "radius=2020-01-01"), "--param radius must be"),
    ((*SOLVE[:5], "--param", "radius=" + "[" * 5000), "--param radius: nested"),
    ((*SOLVE, "--target", "0"), "--target must be finite and above 0, not 0"),
    ((*SOLVE, "--seconds", "nan"), "--seconds must be finite and above 0"),
    ((*SOLVE, "--iterations", "0"), "--iterations must be a whole number of at least 1, not 0"),
    ((*SOLVE, "--threads", "99999"), "the processors that this process may use, not 99999"),
    ((*SOLVE, "--cluster", "local"), "--cluster: pdhg runs on this machine alone"),
    ((*SOLVE, "--save", "no/where.npz"), "--save: the solution cannot be written to no/where.npz"),
    ((*SOLVE, "--save", "."), "--save: . is not a file"),
    ((*SOLVE, "--checkpoint-every", "5"), "--checkpoint-every needs --checkpoint"),
    ((*SOLVE, "--checkpoint", "x.npz", "--checkpoint-every", "0"), "--checkpoint-every must be finite and above 0"),
    ((*SOLVE, "--checkpoint", "no/x.npz"), "--checkpoint: the checkpoint cannot be written to no/x.npz"),
    ((*SOLVE, "--resume", "x.npz"), "--resume: there is no file x.npz"),
    (("solve", "l1inf_hinge", "scs", *SOLVE[3:], "--resume", "x.npz"), "are for solvers that iterate, and scs answers once"),
    ((*SOLVE, "--checkpoint", "x.npz", "--save", "x.npz"), "--save and --checkpoint name the same file"),
    ((*SOLVE, "--seed", str(2**63)), "--seed must be a whole number of at least 0 and at most 9007199254740992"),
    ((*SOLVE, "--out", "out"), "--out is for several solvers"),
    (("solve", "l1inf_hinge", "auto", *SOLVE[2:], "--target", "3"), "--target must be relative gaps, above 0 and at most 1"),
    (("solve", "l1inf_hinge", "auto", *SOLVE[2:], "--checkpoint-every", "0"), "--checkpoint-every is for one solver"),
    (("solve", "l1inf_hinge", "auto", "pdgh", *SOLVE[3:]), "unknown solver 'pdgh': did you mean 'pdhg'?"),
    (("solve", "l1inf_hinge", "auto", "auto", *SOLVE[3:]), "solvers: two are labelled 'auto'"),
    *((("solve", "l1inf_hinge", "auto", *SOLVE[2:], f"--{option}", "a=1"), f"--{option} is for one solver")
      for option in ("option", "save", "checkpoint", "resume", "cluster")),
    ((*PATH, "radius:1,2"), "--over must be KEY=V1,V2,..., not 'radius:1,2'"),
    ((*PATH, "radius=1,x"), "--over radius must be numbers"),
    ((*PATH, "radius=-1"), "radius must be finite and at least 0"),
    ((*PATH, "radius=1,2", "--param", "radius=1"), "give it once"),
    ((*PATH, "radius=1,2", "--csv", "no/where.csv"), "--csv: the table cannot be written to no/where.csv"),
    # Tables of one's own
    ((*PATH[:3], "--data", "own.csv", "--over", "radius=1"), "The columns are a, b, c, red, round"),
]  # fmt: skip

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((8, 3)), np.sign(RNG.standard_normal((8, 2)))


def tiny() -> L1InfHinge:
    return L1InfHinge(TaskData.shared(X, Y), radius=1.0)


#: Calls from Python, and what the exception says.
CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: run(tiny(), "pdhg", limits=Limits(seconds=-1.0)), "seconds of limits must be finite and at least 0, not -1"),
    (lambda: run(tiny(), "pdhg", limits=Limits(iterations="3")), "iterations of limits must be a number, not '3'"),  # type: ignore[arg-type]
    (lambda: run(tiny(), "projected_subgradient", start="zero"), "primal point must be an array of real numbers"),  # type: ignore[arg-type]
    # Data
    (lambda: TaskData.shared(X, [["yes"] * 2] * 8), "Y must be an array of real numbers"),
    # Projections
    (lambda: projections.project_l1inf_ball(sp.csr_array(X), 1.0, out=np.zeros((8, 3))), "out must be None for a sparse matrix"),
    (lambda: projections.project_l1_ball(sp.csr_array(X), 1.0), "v must be an array here: sparse matrices are not supported"),
    (lambda: projections.project_simplex([]), "v must have at least one entry"),
    (lambda: projections.SparseBall(1.0).to_dense(2.5), "dimension must be a whole number of at least 0"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(here: Path) -> Iterator[None]:
    """A table, a file of words, a model and one that raises; no results are there in the end."""
    Path("file.txt").write_text("just words\n")
    Path("bad.py").write_text("1 / 0\n")
    Path("model.py").write_text("import cvxpy\nproblem, number = cvxpy.Problem(cvxpy.Minimize(cvxpy.Variable(name='x')), []), 3\n")
    table_of_flowers(Path("own.csv"))
    yield
    assert not list(here.rglob(FILE_NAME))
    assert not {"new", "out", "site", "results"} & {path.name for path in here.iterdir()}


@pytest.mark.parametrize(("words", "said"), COMMANDS, ids=[" ".join(words)[:100] for words, _ in COMMANDS])
def test_commands(command: Command, words: tuple[str, ...], said: str) -> None:
    assert said in refused(command(*words))


def test_a_suite_for_a_larger_machine_is_read_and_not_run(command: Command) -> None:
    problem = BOX.replace('"box"', '"l1inf_hinge"') + "parameters = { radius = 1.0 }\n"
    Path("own.toml").write_text(suite_of("pdhg", head="threads = 9999", problems=problem))
    for more in ([], ["--isolation", "inline"], ["--cluster", "local"]):
        line = refused(command("run", "own.toml", *more))
        assert re.search(r"threads of the suite must be at most \d+ here, .* not 9999: run it on a larger machine", line)
    assert command("run", "own.toml", "--dry-run").code == 0
    assert expand(read_suite("own.toml"), load_registry())[0].threads == 9999


@pytest.mark.parametrize(("call", "said"), CALLS, ids=[f"{number}: {said}" for number, (_, said) in enumerate(CALLS)])
def test_calls(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    text = str(error.value)
    assert said in text
    assert (error.value.argument or "") in text
    assert error.value.allowed is None or error.value.allowed in text
    assert "\n" not in text
    assert len(text) < 1_000, "a list that nobody reads"
