"""A table of mistakes: each is one line that names the argument and, where there is one, the nearest name; the command exits with 2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from commands import SMALL, Command, refused, table_of_flowers

from bench_mtl import InputError, Limits, TaskData, estimators, load_registry, projections, regularisation_path, run
from bench_mtl.engine.suite import expand
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.results import FILE_NAME

LONG = "n" * 300

#: Calls that would be right.
SOLVE = ("solve", "l1inf_hinge", "pdhg", "--data", "digits", "--param", "radius=1")
OWN = (*SOLVE, "--data", "own.csv", "--data-option")
SHARD = ("shard", "own.csv", "--out", "new")
PATH = ("path", "l1inf_hinge", "projected_subgradient", *SMALL, "--over")

#: Words of a command, and what the one line says.
COMMANDS: list[tuple[tuple[str, ...], str]] = [
    # Commands and options
    (("slove",), "Did you mean 'solve'"),
    (("run", "quick", "--onyl", "solver=pdhg"), "'--only'"),
    (("run", "quick", "extra"), "unexpected extra argument"),
    (("run", "quick", "--slots", "two"), "'two' is not a valid integer"),
    (("run", "quick", "--slots", "0"), "--slots must be a whole number of at least 1, not 0"),
    (("run", "quick", "--slots", "99999", "--out", "out"), "99999 slots of 1 thread need 99999 processors, but this process may use"),
    (("run", "quick", "--isolation", "inlin"), "'inlin' is not one of 'process', 'inline': did you mean 'inline'?"),
    (("run", "quick", "--isolation", "inline", "--slots", "2"), "neither --slots nor --cluster goes with it"),
    (("run", "quick", "--cluster", " "), "--cluster is local"),
    (("run", "quick", "--cluster", "tcp://x", "--slots", "2"), "--cluster is local"),
    (("run", "qick"), "unknown suite 'qick': did you mean 'quick'? allowed: quick, "),
    (("run", "nowhere.toml"), "suite file nowhere.toml does not exist"),
    (("run", "file.txt"), "suite file file.txt cannot be read"),
    (("run", "quick", "--out", "file.txt"), "--out: file.txt is not a folder"),
    (("run", "quick", "--out", ""), "a path must not be empty"),
    (("run", "quick", "--out", LONG), "cannot be used"),
    (("run", "quick", "--plugins", LONG), "cannot be used"),
    (("run", "quick", "--plugins", "nowhere"), "plug-in folder nowhere does not exist"),
    (("run", "quick", "--only", "solver=pdgh"), "--only: no case has a solver like pdgh: did you mean 'pdhg'?"),
    (("run", "quick", "--only", "problem=*zzz"), "--only: no case has a problem like *zzz: there are "),
    (("run", "quick", "--only", "colour=red"), "--only must be KEY=PATTERN with a key of problem, family, solver, seed, repetition, data"),
    (("run", "quick", "--only", "problems=hinge"), "did you mean 'problem'?"),
    (("run", "quick", "--only", "solver=scs", "--only", "seed=77", "--dry-run"), "--only: no case has a seed like 77"),
    (("list", "solver"), "'solver' is not one of 'problems', 'solvers', 'suites', 'data': did you mean 'solvers'?"),
    (("list", "data", "--data-dir", "file.txt"), "data directory"),
    (("list", "data", "--data-dir", LONG), "cannot be used"),
    (("compare", "a"), "Missing argument 'B'"),
    (("compare", "nowhere", "nowhere"), "no results in nowhere"),
    (("compare", "nowhere", "nowhere", "--threshold", "-1"), "--threshold must be finite and at least 0, not -1"),
    (("export", "nowhere"), "no results in nowhere"),
    (("export", "nowhere", "--format", "parket"), "'parket' is not one of 'parquet', 'csv': did you mean 'parquet'?"),
    (("merge", "nowhere", "-o", "new"), "merge needs at least two results folders"),
    (("merge", "a", "a"), "Missing option '-o' / '--out'"),
    (("merge", "new", "other", "-o", "new"), "--out: new is one of the folders to merge"),
    (("check", "nowhere"), "no results in nowhere"),
    (("publish", "nowhere", "--out", "site", "--jobs", "0"), "--jobs must be a whole number of at least 1"),
    (("publish", "nowhere", "--out", "site", "--title", " "), "--title must be"),
    (("report", LONG), "cannot be used"),
    (("report", "nowhere"), "no results in nowhere"),
    (("report", "nowhere", "--format", "htm"), "--format must be one of md, html, csv, tex, parquet, svg, pdf, png, cover, not 'htm'"),
    (("report", "nowhere", "--target", "2"), "--target must be a relative gap, above 0 and at most 1, not 2"),
    (("report", "nowhere", "--select", "solvr=pdhg"), "did you mean 'solver'?"),
    (("report", "nowhere", "--check", "--target", "0.1"), "No such option"),
    (("report", "index", "nowhere", "--check"), "No such option"),
    (("report", "check", "nowhere"), "has no report.md to check"),
    (("report", "nowhere", "--index"), "is no folder of reports"),
    (("validate", "--cases", "0"), "--cases must be a whole number of at least 1, not 0"),
    (("validate", "--seed", "-1"), "--seed must be a whole number of at least 0, not -1"),
    (("validate", "--only", "pegasus"), "unknown problem, solver or projection 'pegasus': did you mean 'pegasos'?"),
    (("doctor", "--plugins", "nowhere"), "plug-in folder nowhere does not exist"),
    (("certify", "model.py:problm"), "unknown problem of model.py 'problm': did you mean 'problem'"),
    (("certify", "model.py:number"), "unknown problem of model.py 'number'"),
    (("certify", "model.py"), "the model must be FILE.py:NAME"),
    (("certify", "l1inf_hinge", "nowhere.npz", "--data", "digits", "--param", "radius=1"), "nowhere.npz cannot be read"),
    (("certify", "l1inf_hinge", "nowhere.npz"), "a problem needs its --data, and a file of coefficients"),
    (("certify", "nowhere.py:problem"), "there is no file nowhere.py"),
    (("certify", "bad.py:problem"), "bad.py does not run: ZeroDivisionError: division by zero"),
    (("certify", "model.py:problem", "--bound", "y=1"), "unknown variable 'y'"),
    (("certify", "model.py:problem", "--solver", "NOBODY"), "CVXPY refuses the model"),
    ((*SHARD[:2], "--out", "."), ". exists: shards are written to a new folder"),
    ((*SHARD, "--rows", "1", "--megabytes", "2"), "rows and megabytes both say how large a shard is"),
    ((*SHARD, "--data-option", "label=red"), "'label': did you mean 'labels'?"),
    ((*SHARD, "--name", "a\tb"), "name must be visible characters on one line"),
    (("shard", "digts", "--out", "new"), "unknown data 'digts': did you mean 'digits'?"),
    # One problem and one solver
    (("solve", "l1inf_hinge"), "Missing argument 'SOLVER"),
    (("solve", "l1inf_hinge", "conic"), "Missing option '--data'"),
    (("solve", "L1INF_HING", *SOLVE[2:]), "unknown problem 'L1INF_HING': did you mean 'l1inf_hinge'? allowed: "),
    (("solve", "l1inf_hinge", "pdgh", *SOLVE[3:]), "unknown solver 'pdgh': did you mean 'pdhg'? allowed: "),
    (("solve", "l1inf_hinge", "clarable", *SOLVE[3:]), "did you mean 'clarabel'?"),
    (("solve", "l1inf_hinge", "scs", *SOLVE[3:], "--option", "backend=ECOS"), "solver 'scs' is solver 'conic' with backend = 'SCS'"),
    (("solve", "l1inf_hinge", "highs", *SOLVE[3:], "--option", "method=simplx"), "did you mean 'simplex'?"),
    ((*SOLVE, "--option", "step_rul=norm"), "unknown option of solver 'pdhg' 'step_rul': did you mean 'step_rule'?"),
    ((*SOLVE, "--option", "step_rule=nrm"), "step_rule must be one of preconditioned, norm, not 'nrm': did you mean 'norm'?"),
    ((*SOLVE, "--option", "=norm"), "--option must be KEY=VALUE, not '=norm'"),
    ((*SOLVE, "--param", "radius"), "--param must be KEY=VALUE, not 'radius'"),
    ((*SOLVE, "--param", "radius=2"), "--param radius is given twice"),
    ((*SOLVE, "--param", "penalty=2"), "exactly one of radius"),
    ((*SOLVE[:5], "--param", "radius=x"), "radius must be a number"),
    ((*SOLVE[:5], "--param", "radius=2020-01-01"), "--param radius must be"),
    ((*SOLVE[:5], "--param", "radius=" + "[" * 5000), "--param radius: nested"),
    ((*SOLVE, "--param", "raduis=2"), "unknown parameter of problem 'l1inf_hinge' 'raduis': did you mean 'radius'?"),
    ((*SOLVE, "--param", "reduction=men"), "reduction must be one of mean, sum, not 'men': did you mean 'mean'?"),
    ((*SOLVE, "--data-option", "held_ot=3"), "did you mean 'held_out'?"),
    ((*SOLVE, "--preprocess", "standardize"), "did you mean 'standardise'?"),
    ((*SOLVE, "--target", "0"), "--target must be finite and above 0, not 0"),
    ((*SOLVE, "--target", "tight"), "'tight' is not a valid float"),
    ((*SOLVE, "--seconds", "nan"), "--seconds must be finite and above 0"),
    ((*SOLVE, "--iterations", "0"), "--iterations must be a whole number of at least 1, not 0"),
    ((*SOLVE, "--seed", "-1"), "--seed must be a whole number of at least 0, not -1"),
    ((*SOLVE, "--threads", "0"), "--threads must be a whole number of at least 1, not 0"),
    ((*SOLVE, "--threads", "99999"), "the processors that this process may use, not 99999"),
    ((*SOLVE, "--cluster", "local"), "--cluster: pdhg runs on this machine alone"),
    ((*SOLVE, "--data", "digts"), "unknown data 'digts': did you mean 'digits'?"),
    ((*SOLVE, "--data", "nowhere.npz"), "data file 'nowhere.npz' is missing"),
    ((*SOLVE, "--data", LONG), "cannot be used"),
    ((*SOLVE, "--data", "synthetic_l1inf", "--data-option", "taks=3"), "did you mean 'tasks'?"),
    ((*SOLVE, "--save", "no/where.npz"), "--save: the solution cannot be written to no/where.npz"),
    ((*SOLVE, "--save", "."), "--save: . is not a file"),
    ((*SOLVE, "--save", LONG), "--save"),
    ((*SOLVE, "--checkpoint-every", "5"), "--checkpoint-every needs --checkpoint"),
    ((*SOLVE, "--checkpoint", "x.npz", "--checkpoint-every", "0"), "--checkpoint-every must be finite and above 0"),
    ((*SOLVE, "--checkpoint", "no/x.npz"), "--checkpoint: the checkpoint cannot be written to no/x.npz"),
    ((*SOLVE, "--checkpoint", "."), "--checkpoint: . is not a file"),
    ((*SOLVE, "--resume", "x.npz"), "--resume: there is no file x.npz"),
    (("solve", "l1inf_hinge", "scs", *SOLVE[3:], "--resume", "x.npz"), "are for solvers that iterate, and scs answers once"),
    ((*SOLVE, "--out", "out"), "--out is for several solvers"),
    (("solve", "l1inf_hinge", "auto", "pdgh", *SOLVE[3:]), "unknown solver 'pdgh': did you mean 'pdhg'?"),
    (("solve", "l1inf_hinge", "auto", "auto", *SOLVE[3:]), "solvers: two are labelled 'auto'"),
    *((("solve", "l1inf_hinge", "auto", *SOLVE[2:], f"--{option}", "a=1"), f"--{option} is for one solver")
      for option in ("option", "save", "checkpoint", "resume", "cluster")),
    (("path", *SOLVE[1:5]), "Missing option '--over'"),
    ((*PATH, "radius:1,2"), "--over must be KEY=V1,V2,..., not 'radius:1,2'"),
    ((*PATH, "=1"), "--over must be KEY=V1,V2"),
    ((*PATH, "radius=1,x"), "--over radius must be numbers"),
    ((*PATH, "radius=-1"), "radius must be finite and at least 0"),
    ((*PATH, "raduis=1,2"), "did you mean 'radius'?"),
    ((*PATH, "radius=1,2", "--param", "radius=1"), "give it once"),
    ((*PATH, "radius=1,2", "--csv", "no/where.csv"), "--csv: the table cannot be written to no/where.csv"),
    ((*PATH, "radius=1,2", "--option", "step_sizes=[0]"), "step_sizes must be"),
    # Tables of one's own
    ((*SOLVE, "--data", "own.csv"), "which columns are to be learned?"),
    ((*PATH[:3], "--data", "own.csv", "--over", "radius=1"), "The columns are a, b, c, red, round"),
    ((*OWN, "labels=rde"), "labels names column 'rde', which does not exist: did you mean 'red'?"),
    ((*OWN, "labels=a"), "column 'a' in line 2 must be a label 0/1 or -1/+1"),
    ((*OWN, "labels=red", "--data-option", "header=maybe"), "header must be true or false"),
]  # fmt: skip

SUITE = """
[[problems]]
name = "l1inf_hinge"
data = { name = "synthetic_l1inf", tasks = 2, features = 4, examples = 5 }
parameters = { radius = 1.0 }

[[solvers]]
name = "pdhg"
"""

#: What is changed in a suite, and what the one line says.
SUITES: list[tuple[str, str, str]] = [
    ("[[problems]]", "[[problem]]", "the suite needs the key 'problems', and has 'problem': did you mean 'problems'?"),
    ("[[solvers]]", "[[solvers", "cannot be read"),
    ("parameters", "parameter", "unknown key in [[problems]] entry 1 'parameter': did you mean 'parameters'?"),
    ("radius = 1.0", "radius = -1.0", "radius must be finite and at least 0, not -1"),
    ("tasks = 2", "task = 2", "'task'"),
    ("tasks = 2", "tasks = 0", "tasks"),
    ("tasks = 2", "tasks = 2, fallback = 3", "data must be a table with exactly one of 'name' and 'file', not 3"),
    ("synthetic_l1inf", "scene", "BENCH_MTL_DATA"),
    ('name = "pdhg"', 'name = "ecoss"', "did you mean 'ecos'?"),
    ('name = "pdhg"', 'name = "ecos"\noptions = { backend = "SCS" }', "solver 'ecos' is solver 'conic' with backend = 'ECOS'"),
    ('name = "pdhg"', 'name = "pdhg"\noptions = { variant = "avrage" }', "did you mean 'average'?"),
    ('name = "pdhg"', 'name = "pdhg"\nproblems = ["l1inf_hinge"]', "did you mean 'l1inf_hinge synthetic_l1inf'?"),
    ("\n[[problems]]", "targets = 1e-2\n[[problems]]", "'targets' in the suite must be a list, not 0.01"),
    ("\n[[problems]]", "limits = { second = 1 }\n[[problems]]", "unknown key in [limits] 'second': did you mean 'seconds'?"),
    ("\n[[problems]]", "limits = 3\n[[problems]]", "'limits' in the suite must be a table, not 3"),
    ("\n[[problems]]", "repeat_fastest = -1\n[[problems]]", "repeat_fastest must be a whole number of at least 0, not -1"),
    ("\n[[problems]]", 'name = "a/b"\n[[problems]]', "name of the suite must be 1 to 100 letters"),
]

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((8, 3)), np.sign(RNG.standard_normal((8, 2)))
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "red": (Y[:, 0] > 0).astype(int), "word": ["yes"] * 8})


def tiny() -> L1InfHinge:
    return L1InfHinge(TaskData.shared(X, Y), radius=1.0)


def fitted(name: str, **parameters: Any) -> Any:
    return getattr(estimators, name)(**parameters).fit(X, Y > 0)


#: Calls from Python, and what the exception says.
CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: run(tiny(), "scs_"), "did you mean 'scs'?"),
    (lambda: run(tiny(), "pdhg", tolerance=-1.0), "tolerance must be finite and above 0, not -1"),
    (lambda: run(tiny(), "pdhg", limits=Limits(seconds=-1.0)), "seconds of limits must be finite and at least 0, not -1"),
    (lambda: run(tiny(), "pdhg", limits=Limits(iterations="3")), "iterations of limits must be a number, not '3'"),  # type: ignore[arg-type]
    (lambda: run(tiny(), "projected_subgradient", start="zero"), "primal point must be an array of real numbers"),  # type: ignore[arg-type]
    (lambda: regularisation_path(lambda value: tiny(), [], load_registry().solver("pdhg")), "values must hold at least one number"),
    (lambda: regularisation_path(lambda value: tiny(), [-1.0], load_registry().solver("pdhg")), "values must be finite and at least 0"),
    # Data
    (lambda: TaskData.shared(X, Y[:5]), "Y has 5 rows, but X has 8"),
    (lambda: TaskData.shared(X[0], Y), "X must have 2 dimension(s), but has shape (3,)"),
    (lambda: TaskData.shared(X, [["yes"] * 2] * 8), "Y must be an array of real numbers"),
    (lambda: TaskData.shared(X, np.zeros((8, 0))), "Y must be n x m with at least one task"),
    (lambda: TaskData.per_task([X, X], [Y[:, 0]]), "there are 2 designs but 1 target vectors"),
    (lambda: TaskData.per_task([X, X[:, :2]], [Y[:, 0], Y[:, 0]]), "X of task 1 has 2 features, but task 0 has 3"),
    (lambda: TaskData.per_task([], []), "designs must hold at least one task"),
    (lambda: TaskData.from_frame(FRAME, labels="red", task="wrd"), "task names column 'wrd', which does not exist: did you mean 'word'?"),
    (lambda: TaskData.from_frame(FRAME, class_column="word"), "column 'word' has the same class in every row"),
    (lambda: TaskData.from_frame(FRAME.assign(a=np.nan), labels="red", drop="word"), "column 'a' in row 0 has no value"),
    (lambda: TaskData.from_tasks([FRAME]), "frames must be a table of a pandas frame for each task, not list"),  # type: ignore[arg-type]
    (lambda: TaskData.from_tasks({"Rome": FRAME[["a", "b", "red"]], "Oslo": FRAME[["a", "red"]]}, labels="red"), "task 'Oslo': column 'b'"),
    (lambda: TaskData.from_tasks({"Rome": FRAME}, labels="rd", drop="word"), "task 'Rome': labels names column 'rd'"),
    # Projections
    (lambda: projections.project_l1inf_ball(X, -1.0), "radius must be finite and at least 0, not -1"),
    (lambda: projections.project_l1inf_ball(X, "big"), "radius must be a number, not 'big'"),
    (lambda: projections.project_l1inf_ball(X, 1.0, method="nwton"), "not 'nwton': did you mean 'newton'?"),
    (lambda: projections.project_l1inf_ball(sp.csr_array(X), 1.0, out=np.zeros((8, 3))), "out must be None for a sparse matrix"),
    (lambda: projections.project_l1_ball([1.0, np.nan], 0.5), "v has NaN at index 1"),
    (lambda: projections.project_l1_ball(X, 1.0, axis=2), "axis must be -1 or 0, not 2"),
    (lambda: projections.project_l1_ball(sp.csr_array(X), 1.0), "v must be an array here: sparse matrices are not supported"),
    (lambda: projections.project_simplex([]), "v must have at least one entry"),
    (lambda: projections.project_simplex([1.0], mass=-1.0), "mass must be finite and at least 0, not -1"),
    (lambda: projections.project_l2_ball(X, [1.0, 2.0], axis=0), "radius must be one number of at least 0, or one for each of the 3 balls"),
    (lambda: projections.project_box_simplex([1.0, 2.0], 5.0, 0.0, 1.0), "between the sums of lower and upper, 0 and 2, not 5"),
    (lambda: projections.project_trace_ball(X, 1.0, method="partal"), "did you mean 'partial'?"),
    (lambda: projections.project_trace_ball(X[0], 1.0), "A must have 2 dimension(s), but has shape (3,)"),
    (lambda: projections.prox_l1inf(X, -1.0), "weight must be finite and at least 0, not -1"),
    (lambda: projections.soft_threshold(X, None), "threshold must be a number, not None"),  # type: ignore[arg-type]
    (lambda: projections.SparseBall(1.0, storage="lists"), "storage must be one of array, tree, not 'lists'"),
    # Estimators
    (lambda: fitted("L1InfClassifier", radius=1.0, solver="pdhg", solver_options={"varant": 1}), "did you mean 'variant'?"),
    (lambda: fitted("L1InfClassifier", radius=1.0, loss="hing"), "not 'hing': did you mean 'hinge'?"),
    (lambda: fitted("RidgeMultiTaskClassifier", alpha=0.0), "alpha must be finite and above 0, not 0"),
    (lambda: fitted("LinearSVMMultiTaskClassifier", loss="hinges"), "did you mean 'hinge'?"),
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


@pytest.mark.parametrize(("old", "new", "said"), SUITES, ids=[new.strip() for _, new, _ in SUITES])
def test_suites(command: Command, old: str, new: str, said: str) -> None:
    assert SUITE.count(old) >= 1
    Path("own.toml").write_text(SUITE.replace(old, new, 1))
    assert said in refused(command("run", "own.toml", "--isolation", "inline"))


def test_a_suite_for_a_larger_machine_is_read_and_not_run(command: Command) -> None:
    Path("own.toml").write_text("threads = 9999\n" + SUITE)
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
    assert "\n" not in text
    assert len(text) < 1_000, "a list that nobody reads"
