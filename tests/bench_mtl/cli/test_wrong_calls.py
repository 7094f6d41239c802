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

from bench_mtl import InputError, Iterate, Limits, TaskData, Tolerance, load, load_registry, projections, regularisation_path, run
from bench_mtl.engine.suite import expand
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.results import FILE_NAME

Command = Callable[..., Any]

#: A call that would be right.
SOLVE = ("solve", "l1inf_hinge", "pdhg", "--data", "digits", "--param", "radius=1")

#: Words of a command, and what the one line says.
COMMANDS: list[tuple[list[str], str]] = [
    # Commands and options
    (["slove"], "Did you mean 'solve'"),
    (["reports", "x"], "'report'"),
    (["run", "quick", "--onyl", "solver=pdhg"], "'--only'"),
    (["run", "quick", "--dryrun"], "'--dry-run'"),
    (["run", "quick", "extra"], "unexpected extra argument"),
    (["run", "quick", "--slots"], "'--slots' requires an argument"),
    (["run", "quick", "--slots", "two"], "'two' is not a valid integer"),
    (["run", "quick", "--slots", "0"], "--slots must be a whole number of at least 1, not 0"),
    (["run", "quick", "--slots", "99999", "--out", "out"], "99999 slots of 1 thread need 99999 processors, but this process may use"),
    (["run", "quick", "--isolation", "inlin"], "'inlin' is not one of 'process', 'inline': did you mean 'inline'?"),
    (["run", "quick", "--cluster", " "], "--cluster is local"),
    (["run", "qick"], "unknown suite 'qick': did you mean 'quick'? allowed: quick, "),
    (["run", "headline-hing"], "did you mean 'headline-hinge'?"),
    (["run", "nowhere.toml"], "suite file nowhere.toml does not exist"),
    (["run", "quick.tml"], "suite file quick.tml does not exist"),
    (["run", "."], "unknown suite '.'"),
    (["run", "file.txt"], "suite file file.txt cannot be read"),
    (["run", "quick", "--out", "file.txt"], "--out: file.txt is not a folder"),
    (["run", "quick", "--out", ""], "a path must not be empty"),
    (["run", "quick", "--only", "solver=pdgh"], "no case has a solver like pdgh: did you mean 'pdhg'?"),
    (["run", "quick", "--only", "problem=*zzz"], "no case has a problem like *zzz: there are "),
    (["run", "quick", "--only", "colour=red"], "--only must be KEY=PATTERN with a key of problem, family, solver, seed, repetition, data"),
    (["run", "quick", "--only", "problems=hinge"], "did you mean 'problem'?"),
    (["list", "solver"], "'solver' is not one of 'problems', 'solvers', 'suites', 'data': did you mean 'solvers'?"),
    (["list"], "Missing argument"),
    (["list", "data", "--data-dir", "file.txt"], "data directory"),
    (["compare", "a"], "Missing argument 'B'"),
    (["compare", "nowhere", "nowhere"], "no results in nowhere"),
    (["compare", "nowhere", "nowhere", "--threshold", "-1"], "--threshold must be finite and at least 0, not -1"),
    (["compare", "nowhere", "nowhere", "--treshold", "1"], "'--threshold'"),
    (["export", "nowhere"], "no results in nowhere"),
    (["export", "nowhere", "--format", "parket"], "'parket' is not one of 'parquet', 'csv': did you mean 'parquet'?"),
    (["merge", "nowhere", "-o", "new"], "merge needs at least two results folders"),
    (["merge", "a", "a"], "Missing option '-o' / '--out'"),
    (["merge", "new", "other", "-o", "new"], "--out: new is one of the folders to merge"),
    (["check", "nowhere"], "no results in nowhere"),
    (["check"], "Missing argument"),
    (["report", "nowhere", "--format", "htm"], "not 'htm': did you mean 'html'?"),
    (["report", "nowhere", "--target", "2"], "--target must be a relative gap, above 0 and at most 1, not 2"),
    (["report", "nowhere", "--select", "solvr=pdhg"], "did you mean 'solver'?"),
    (["report", "nowhere", "--check", "--target", "0.1"], "--check goes with no other option"),
    (["report", "nowhere", "--check", "--index"], "--check goes with no other option"),
    (["report", "nowhere", "--check"], "has no report.md to check"),
    (["report", "nowhere", "--index", "--target", "0.1"], "--index goes with no other option"),
    (["report", "nowhere", "--index"], "is no folder of reports"),
    (["validate", "--cases", "-3"], "--cases must be a whole number of at least 1, not -3"),
    (["validate", "--seed", "-1"], "--seed must be a whole number of at least 0, not -1"),
    (["doctor", "--plugins", "nowhere"], "plug-in folder nowhere does not exist"),
    (["shard", "own.csv"], "Missing option '--out'"),
    (["shard", "own.csv", "--out", "."], ". exists: shards are written to a new folder"),
    (["shard", "own.csv", "--out", "file.txt/new", "--data-option", "labels=red"], "folder of shards file.txt/new cannot be made: "),
    (["shard", "own.csv", "--out", "new", "--rows", "0"], "rows must be a whole number of at least 1, not 0"),
    (["shard", "own.csv", "--out", "new", "--rows", "1", "--megabytes", "2"], "rows and megabytes both say how large a shard is"),
    (["shard", "own.csv", "--out", "new", "--megabytes", "0"], "megabytes must be finite and above 0, not 0"),
    (["shard", "own.csv", "--out", "new", "--row", "3"], "'--rows'"),
    (["shard", "own.csv", "--out", "new"], "which columns are to be learned?"),
    (["shard", "own.csv", "--out", "new", "--data-option", "label=red"], "'label': did you mean 'labels'?"),
    (["shard", "own.csv", "--out", "new", "--data-option", "labels=red"], "column 'word' in line 2 is no number: 'yes'"),
    (["shard", "own.csv", "--out", "new", "--data-option", "impute=mean"], "impute takes a statistic of all rows"),
    (["shard", "own.csv", "--out", "new", "--name", "a\tb"], "name must be visible characters on one line"),
    (["shard", "digits", "--out", "new"], "'digits' is no file: shards are written of a file"),
    (["shard", "digts", "--out", "new"], "unknown data 'digts': did you mean 'digits'?"),
    (["shard", "nowhere.csv", "--out", "new"], "data file 'nowhere.csv' is missing"),
    (["shard", "file.txt", "--out", "new"], "file.txt: not readable as a LIBSVM file"),
    (["shard", "file.json", "--out", "new"], "data file 'file.json' is missing"),
    # One problem and one solver
    (["solve", "l1inf_hinge"], "Missing argument 'SOLVER"),
    (["solve", "l1inf_hing", *SOLVE[2:]], "unknown problem 'l1inf_hing': did you mean 'l1inf_hinge'? allowed: "),
    (["solve", "L1INF_HINGE", *SOLVE[2:]], "did you mean 'l1inf_hinge'?"),
    (["solve", "l1inf_hinge", "pdgh", *SOLVE[3:]], "unknown solver 'pdgh': did you mean 'pdhg'? allowed: "),
    (["solve", "l1inf_hinge", "PDHG", *SOLVE[3:]], "did you mean 'pdhg'?"),
    (["solve", "l1inf_hinge", "clarable", *SOLVE[3:]], "did you mean 'clarabel'?"),
    (["solve", "l1inf_hinge", "scs", *SOLVE[3:], "--option", "backend=ECOS"], "solver 'scs' is solver 'conic' with backend = 'SCS'"),
    (["solve", "l1inf_hinge", "conic", *SOLVE[3:], "--option", "backend=CLARABLE"], "did you mean 'CLARABEL'?"),
    (["solve", "l1inf_hinge", "highs", *SOLVE[3:], "--option", "method=simplx"], "did you mean 'simplex'?"),
    ([*SOLVE, "--option", "step_rul=norm"], "unknown option of solver 'pdhg' 'step_rul': did you mean 'step_rule'?"),
    ([*SOLVE, "--option", "step_rule=nrm"], "step_rule must be one of preconditioned, norm, not 'nrm': did you mean 'norm'?"),
    ([*SOLVE, "--option", "step_rule"], "--option must be KEY=VALUE, not 'step_rule'"),
    ([*SOLVE, "--option", "=norm"], "--option must be KEY=VALUE, not '=norm'"),
    ([*SOLVE, "--param", "radius=2"], "--param radius is given twice"),
    ([*SOLVE, "--param", "penalty=2"], "exactly one of radius"),
    ([*SOLVE, "--param", "raduis=2"], "unknown parameter of problem 'l1inf_hinge' 'raduis': did you mean 'radius'?"),
    ([*SOLVE, "--param", "reduction=men"], "reduction must be one of mean, sum, not 'men': did you mean 'mean'?"),
    ([*SOLVE, "--data-option", "labels=3"], "unknown key for data 'digits' 'labels'"),
    ([*SOLVE, "--data-option", "held_ot=3"], "did you mean 'held_out'?"),
    ([*SOLVE, "--preprocess", "standardize"], "did you mean 'standardise'?"),
    ([*SOLVE, "--preprocess", "svd:0"], "svd"),
    ([*SOLVE, "--target", "0"], "--target must be finite and above 0, not 0"),
    ([*SOLVE, "--target", "tight"], "'tight' is not a valid float"),
    ([*SOLVE, "--seconds", "0"], "--seconds must be finite and above 0, not 0"),
    ([*SOLVE, "--iterations", "0"], "--iterations must be a whole number of at least 1, not 0"),
    ([*SOLVE, "--seed", "-1"], "--seed must be a whole number of at least 0, not -1"),
    ([*SOLVE, "--threads", "0"], "--threads must be a whole number of at least 1, not 0"),
    ([*SOLVE, "--threads", "99999"], "the processors that this process may use, not 99999"),
    ([*SOLVE, "--cluster", "local"], "--cluster: pdhg runs on this machine alone"),
    ([*SOLVE, "--data", "digts"], "unknown data 'digts': did you mean 'digits'?"),
    ([*SOLVE, "--data", "synthetic_l1_inf"], "did you mean 'synthetic_l1inf'?"),
    ([*SOLVE, "--data", "nowhere.npz"], "data file 'nowhere.npz' is missing"),
    ([*SOLVE, "--data", "file.txt"], "file.txt"),
    ([*SOLVE, "--data", "synthetic_l1inf", "--data-option", "taks=3"], "did you mean 'tasks'?"),
    ([*SOLVE, "--data", "synthetic_l1inf", "--data-option", "split=tran"], "not 'tran': did you mean 'train'?"),
    ([*SOLVE, "--save", "no/where.npz"], "--save: the solution cannot be written to no/where.npz"),
    ([*SOLVE, "--out", "out"], "--out is for several solvers"),
    (["solve", "l1inf_hinge", "auto", "pdgh", *SOLVE[3:]], "unknown solver 'pdgh': did you mean 'pdhg'?"),
    (["solve", "l1inf_hinge", "auto", "scs", *SOLVE[3:], "--option", "method=ipx"], "--option"),
    (["path", *SOLVE[1:5]], "Missing option '--over'"),
    (["path", *SOLVE[1:5], "--over", "radius:1,2"], "--over must be KEY=V1,V2,..., not 'radius:1,2'"),
    (["path", *SOLVE[1:5], "--over", "raduis=1,2"], "did you mean 'radius'?"),
    (["path", *SOLVE[1:], "--over", "radius=1,2"], "give it once"),
    (["path", *SOLVE[1:5], "--over", "radius=1,2", "--threads", "99999"], "the processors that this process may use, not 99999"),
    # Own tables
    ([*SOLVE, "--data", "own.csv"], "which columns are to be learned?"),
    ([*SOLVE, "--data", "own.csv", "--data-option", "labels=rde"], "labels names column 'rde', which does not exist: did you mean 'red'?"),
    ([*SOLVE, "--data", "own.csv", "--data-option", "labels=RED"], "did you mean 'red'?"),
    ([*SOLVE, "--data", "own.csv", "--data-option", "label=red"], "did you mean 'labels'?"),
    ([*SOLVE, "--data", "own.csv", "--data-option", "labels=9"], "labels = 9 does not fit 4 columns"),
    ([*SOLVE, "--data", "own.csv", "--data-option", "labels=a"], "column 'a' in line 2 must be a label 0/1 or -1/+1, not 0.5"),
    ([*SOLVE, "--data", "own.csv", "--data-option", "labels=red", "--data-option", "targets=a"], "not labels and targets"),
    ([*SOLVE, "--data", "own.csv", "--data-option", "labels=red", "--data-option", "drop=colour"], "drop names column 'colour'"),
    ([*SOLVE, "--data", "own.csv", "--data-option", "labels=red", "--data-option", "separator=tab"], "separator must be one character"),
    ([*SOLVE, "--data", "own.csv", "--data-option", "labels=red", "--data-option", "header=maybe"], "header must be true or false"),
    ([*SOLVE, "--data", "own.csv", "--data-option", "labels=red"], "column 'word' in line 2 is no number: 'yes'"),
    ([*SOLVE, "--data", "own.csv", "--data-option", "labels=red", "--data-option", "impute=men"], "impute must be one of mean, median"),
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
    ("[[solvers]]", "[[solver]]", "did you mean 'solvers'?"),
    ('name = "pdhg"', 'nam = "pdhg"', "needs the key 'name', and has 'nam': did you mean 'name'?"),
    ("data =", "date =", "needs the key 'data', and has 'date': did you mean 'data'?"),
    ("parameters", "parameter", "unknown key in [[problems]] entry 1 'parameter': did you mean 'parameters'?"),
    ('name = "pdhg"', 'name = "pdgh"', "unknown solver 'pdgh': did you mean 'pdhg'?"),
    ('name = "pdhg"', 'name = "ecoss"', "did you mean 'ecos'?"),
    ('name = "pdhg"', 'name = "ecos"\noptions = { backend = "SCS" }', "solver 'ecos' is solver 'conic' with backend = 'ECOS'"),
    ('name = "pdhg"', 'name = "conic"\noptions = { backend = "CLARABLE" }', "did you mean 'CLARABEL'?"),
    ('name = "pdhg"', 'name = "pdhg"\noptions = { varant = "average" }', "did you mean 'variant'?"),
    ('name = "pdhg"', 'name = "pdhg"\noptions = { variant = "avrage" }', "did you mean 'average'?"),
    ('name = "pdhg"', 'name = "pdhg"\nproblems = ["l1inf_hinge"]', "did you mean 'l1inf_hinge synthetic_l1inf'?"),
    ('"l1inf_hinge"', '"linf_hinge"', "unknown problem 'linf_hinge': did you mean 'l1inf_hinge'?"),
    ("\n[[problems]]", "target = [1e-2]\n[[problems]]", "unknown key in the suite 'target': did you mean 'targets'?"),
    ("\n[[problems]]", "targets = 1e-2\n[[problems]]", "'targets' in the suite must be a list, not 0.01"),
    ("\n[[problems]]", "limits = { second = 1 }\n[[problems]]", "unknown key in [limits] 'second': did you mean 'seconds'?"),
    ("\n[[problems]]", "limits = 3\n[[problems]]", "'limits' in the suite must be a table, not 3"),
    ("\n[[problems]]", "threads = 0\n[[problems]]", "threads must be a whole number of at least 1, not 0"),
    ("\n[[problems]]", "repeat_fastest = -1\n[[problems]]", "repeat_fastest must be a whole number of at least 0, not -1"),
    ("\n[[problems]]", 'name = "a/b"\n[[problems]]', "name of the suite must be 1 to 100 letters"),
    ("tasks = 2", "tasks = 2, fallback = 3", "data must be a table with exactly one of 'name' and 'file', not 3"),
    ('name = "synthetic_l1inf"', 'nam = "synthetic_l1inf"', "data must be a table with exactly one of 'name' and 'file'"),
]

PLUGIN = '''
from dataclasses import dataclass
from bench_mtl.model.protocols import Capability, IterativeSolver
from bench_mtl.core.types import Iterate

@dataclass(frozen=True)
class Mine(IterativeSolver):
    """Stands still."""
    name = "mine"
    requires = frozenset({Capability.PROX})

    def steps(self, problem, start=None):
        yield Iterate(problem.zero())
'''

#: What is changed in a plug-in, and what is said of it.
PLUGINS: list[tuple[str, str, str]] = [
    ("import Iterate", "import Iterat", "cannot be imported: ImportError"),
    ("class Mine", "clas Mine", "cannot be imported: SyntaxError"),
    ('    name = "mine"\n', "", "Mine of .* has no name"),
    ('"mine"', '"pdhg"', "defines 'pdhg', which bench_mtl.solvers.pdhg.solver has defined already"),
    ("def steps", "def stps", "cannot be used: Mine lacks steps"),
    ("frozenset({Capability.PROX})", '"prox"', "its requires must be a set of Capability.SMOOTH, .*, not 'prox'"),
    ("frozenset({Capability.PROX})", 'frozenset({"proximal"})', "its requires must be a set of Capability"),
    ("    requires =", "    needs =", "states neither requires nor takes"),
    ("    requires =", "    takes = (int,)\n    requires =", "its takes must be a tuple of subclasses of Form"),
    ("    requires =", "    aliases = ['m']\n    requires =", "its aliases must be a table of names"),
    ("(IterativeSolver)", "", "defines no problem and no solver"),
]

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((8, 3)), np.sign(RNG.standard_normal((8, 2)))
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "red": (Y[:, 0] > 0).astype(int), "word": ["yes"] * 8})


def tiny() -> L1InfHinge:
    return L1InfHinge(TaskData.shared(X, Y), radius=1.0)


def fitted(name: str, **parameters: Any) -> Any:
    from bench_mtl import estimators

    return getattr(estimators, name)(**parameters).fit(X, Y > 0)


#: Calls from Python, and what the exception says.
CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: run(tiny(), "pdgh"), "unknown solver 'pdgh': did you mean 'pdhg'?"),
    (lambda: run(tiny(), "scs_"), "did you mean 'scs'?"),
    (lambda: run(tiny(), 3), "solver must be a Solver"),  # type: ignore[arg-type]
    (lambda: run(tiny().__class__, "pdhg"), "problem must be a Problem"),  # type: ignore[arg-type]
    (lambda: run(tiny(), "pdhg", tolerance=-1.0), "tolerance must be finite and above 0, not -1"),
    (lambda: run(tiny(), "pdhg", tolerance=Tolerance(0.0)), "tolerance must be finite and above 0, not 0"),
    (lambda: run(tiny(), "pdhg", tolerance=True), "tolerance must be a number, not True"),
    (lambda: run(tiny(), "pdhg", limits="1 s"), "limits must be a number, not '1 s'"),  # type: ignore[arg-type]
    (lambda: run(tiny(), "pdhg", limits=Limits(seconds=-1.0)), "seconds of limits must be finite and at least 0, not -1"),
    (lambda: run(tiny(), "pdhg", limits=Limits(iterations="3")), "iterations of limits must be a number, not '3'"),  # type: ignore[arg-type]
    (lambda: run(tiny(), "projected_subgradient", start=np.zeros(3)), "primal point must have shape (3, 2), but has (3,)"),
    (lambda: run(tiny(), "projected_subgradient", start="zero"), "primal point must be an array of real numbers"),  # type: ignore[arg-type]
    (lambda: run(tiny(), "projected_subgradient", start=np.full((3, 2), np.nan)), "primal point has NaN at index (0, 0)"),
    (lambda: run(tiny(), "projected_subgradient", start=Iterate(np.zeros((3, 2)), np.zeros(3))), "dual point must have shape"),
    (lambda: regularisation_path(lambda value: tiny(), [], load_registry().solver("pdhg")), "values must hold at least one number"),
    (lambda: regularisation_path(lambda value: tiny(), [-1.0], load_registry().solver("pdhg")), "values must be finite and at least 0"),
    (lambda: load_registry().problem("l1inf"), "did you mean 'l1inf_"),
    (lambda: load("digits"), "data must be a table with exactly one of 'name' and 'file', not 'digits'"),  # type: ignore[arg-type]
    (lambda: load({"name": "digtis"}), "unknown data 'digtis': did you mean 'digits'?"),
    (lambda: load({"name": "digits", "preproces": "none"}), "did you mean 'preprocess'?"),
    (lambda: L1InfHinge(TaskData.shared(X, Y), radius="big"), "radius must be a number, not 'big'"),  # type: ignore[arg-type]
    (lambda: L1InfHinge(TaskData.shared(X, 2.0 * Y), radius=1.0), "labels must be -1/+1 (or 0/1), but entry (0, 0) is"),
    # Data
    (lambda: TaskData.shared(X, Y[:5]), "Y has 5 rows, but X has 8"),
    (lambda: TaskData.shared(X[0], Y), "X must have 2 dimension(s), but has shape (3,)"),
    (lambda: TaskData.shared([[1.0, 2.0], [3.0]], [1, -1]), "X must be an array of real numbers"),
    (lambda: TaskData.shared(X.astype(complex), Y), "X must be an array of real numbers, not complex ones"),
    (lambda: TaskData.shared(X, [["yes"] * 2] * 8), "Y must be an array of real numbers"),
    (lambda: TaskData.shared(np.where(X > 9, X, np.inf), Y), "X has inf at index (0, 0)"),
    (lambda: TaskData.shared(X, np.zeros((8, 0))), "Y must be n x m with at least one task"),
    (lambda: TaskData.shared(None, Y), "X must have 2 dimension(s)"),
    (lambda: TaskData.per_task(5, 5), "Xs must be a list with an entry for each task, not int"),  # type: ignore[arg-type]
    (lambda: TaskData.per_task([X, X], [Y[:, 0]]), "there are 2 designs but 1 target vectors"),
    (lambda: TaskData.per_task([X, X[:, :2]], [Y[:, 0], Y[:, 0]]), "X of task 1 has 2 features, but task 0 has 3"),
    (lambda: TaskData.per_task([X], [Y]), "y of task 0 must have shape (8,)"),
    (lambda: TaskData.per_task([], []), "designs must hold at least one task"),
    (lambda: TaskData.from_arrays([X, X], 3), "ys must be a list with an entry for each task, not int"),
    (lambda: TaskData.from_arrays([X, X], "ab"), "ys must be a list with an entry for each task, not str"),
    (lambda: TaskData.from_frame(X, labels=1), "frame must be a pandas DataFrame, not ndarray"),
    (lambda: TaskData.from_frame(FRAME), "which columns are to be learned?"),
    (lambda: TaskData.from_frame(FRAME, labels="Red"), "labels names column 'Red', which does not exist: did you mean 'red'?"),
    (lambda: TaskData.from_frame(FRAME, labels="red", task="wrd"), "task names column 'wrd', which does not exist: did you mean 'word'?"),
    (lambda: TaskData.from_frame(FRAME, labels="red", drop="red"), "column 'red' is named twice"),
    (lambda: TaskData.from_frame(FRAME, labels="a", drop="word"), "column 'a' in row 0 must be a label 0/1 or -1/+1"),
    (lambda: TaskData.from_frame(FRAME, class_column="word"), "column 'word' has the same class in every row"),
    (lambda: TaskData.from_frame(FRAME, labels=True, drop="word"), "labels must be a number or names of columns, not True"),
    (lambda: TaskData.from_frame(FRAME.assign(a=np.nan), labels="red", drop="word"), "column 'a' in row 0 has no value"),
    (lambda: TaskData.from_frame(FRAME[:0], labels="red"), "has no row"),
    (lambda: TaskData.from_tasks({}), "frames must be a table of a pandas frame for each task"),
    (lambda: TaskData.from_tasks([FRAME]), "frames must be a table of a pandas frame for each task, not list"),  # type: ignore[arg-type]
    (lambda: TaskData.from_tasks({"Rome": FRAME[["a", "b", "red"]], "Oslo": FRAME[["a", "red"]]}, labels="red"), "task 'Oslo': column 'b'"),
    (lambda: TaskData.from_tasks({"Rome": FRAME}, labels="rd", drop="word"), "task 'Rome': labels names column 'rd'"),
    # Projections
    (lambda: projections.project_l1inf_ball(X, -1.0), "radius must be finite and at least 0, not -1"),
    (lambda: projections.project_l1inf_ball(X, "big"), "radius must be a number, not 'big'"),
    (lambda: projections.project_l1inf_ball(X, 1.0, method="nwton"), "not 'nwton': did you mean 'newton'?"),
    (lambda: projections.project_l1inf_ball(X, 1.0, nonneg="yes"), "nonneg must be true or false, not 'yes'"),  # type: ignore[arg-type]
    (lambda: projections.project_l1inf_ball(X[0], 1.0), "A must have"),
    (lambda: projections.project_l1inf_ball(X, 1.0, out=np.zeros(3)), "out must be a writable float64 array of shape (8, 3)"),
    (lambda: projections.project_l1inf_ball(sp.csr_array(X), 1.0, out=np.zeros((8, 3))), "out must be None for a sparse matrix"),
    (lambda: projections.project_l1_ball([1.0, np.nan], 0.5), "v has NaN at index 1"),
    (lambda: projections.project_l1_ball(X, 1.0, axis=2), "axis must be -1 or 0, not 2"),
    (lambda: projections.project_l1_ball(X, 1.0, nonneg=1), "nonneg must be true or false, not 1"),  # type: ignore[arg-type]
    (lambda: projections.project_l1_ball(sp.csr_array(X), 1.0), "v must be an array here: sparse matrices are not supported"),
    (lambda: projections.project_l1_ball(["a"], 1.0), "v must be an array of real numbers"),
    (lambda: projections.project_simplex([]), "v must have at least one entry"),
    (lambda: projections.project_simplex([1.0], mass=-1.0), "mass must be finite and at least 0, not -1"),
    (lambda: projections.project_l2_ball(X, [1.0, 2.0], axis=0), "radius must be one number of at least 0, or one for each of the 3 balls"),
    (lambda: projections.project_l12_ball(X, np.inf), "radius must be finite and at least 0, not inf"),
    (lambda: projections.project_box_simplex([1.0, 2.0], 5.0, 0.0, 1.0), "between the sums of lower and upper, 0 and 2, not 5"),
    (lambda: projections.project_box_simplex([1.0, 2.0], 1.0, 2.0, 1.0), "lower must not exceed upper"),
    (lambda: projections.project_trace_ball(X, 1.0, method="partal"), "did you mean 'partial'?"),
    (lambda: projections.project_trace_ball(X[0], 1.0), "A must have 2 dimension(s), but has shape (3,)"),
    (lambda: projections.prox_l1inf(X, -1.0), "weight must be finite and at least 0, not -1"),
    (lambda: projections.soft_threshold(X, None), "threshold must be a number, not None"),  # type: ignore[arg-type]
    (lambda: projections.SparseBall(1.0, storage="lists"), "storage must be one of array, tree, not 'lists'"),
    # Estimators
    (lambda: fitted("L1InfClassifier", radius=-1.0), "radius"),
    (lambda: fitted("L1InfClassifier", radius=1.0, penalty=1.0), "give exactly one of radius"),
    (lambda: fitted("L1InfClassifier", radius=1.0, solver="pdgh"), "unknown solver 'pdgh': did you mean 'pdhg'?"),
    (lambda: fitted("L1InfClassifier", radius=1.0, solver="scs", solver_options={"backend": "ECOS"}), "so backend cannot be 'ECOS'"),
    (lambda: fitted("L1InfClassifier", radius=1.0, solver="pdhg", solver_options={"varant": 1}), "did you mean 'variant'?"),
    (lambda: fitted("L1InfClassifier", radius=1.0, loss="hing"), "not 'hing': did you mean 'hinge'?"),
    (lambda: fitted("L1InfClassifier", radius=1.0, tol=0), "tol must be finite and above 0, not 0"),
    (lambda: fitted("TraceNormClassifier", radius=1.0, max_iter=0), "max_iter must be a whole number of at least 1, not 0"),
    (lambda: fitted("RidgeMultiTaskClassifier", alpha=0.0), "alpha must be finite and above 0, not 0"),
    (lambda: fitted("LinearSVMMultiTaskClassifier", loss="hinges"), "did you mean 'hinge'?"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a table of one's own and a file of words; nothing else is there in the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)
    Path("file.txt").write_text("just words\n")
    Path("own.csv").write_text("a,b,word,red\n0.5,1,yes,0\n1.5,2,no,1\n")
    yield tmp_path
    assert not list(tmp_path.rglob(FILE_NAME))


def require_one_line(text: str) -> None:
    assert text
    assert "\n" not in text
    assert "Traceback" not in text
    assert len(text) < 1_000, "a list that nobody reads"


def test_the_table_is_long() -> None:
    assert len(COMMANDS) + len(SUITES) + len(PLUGINS) + len(CALLS) > 120


@pytest.mark.parametrize(("words", "said"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_commands(command: Command, words: list[str], said: str) -> None:
    result = command(*words)
    assert (result.code, len(result.err)) == (2, 1), (result.code, result.out, result.err)
    require_one_line(result.err[0])
    assert result.err[0].startswith("bench-mtl: ")
    assert said in result.err[0]
    assert result.out == []


@pytest.mark.parametrize(("old", "new", "said"), SUITES, ids=[new.strip() for _, new, _ in SUITES])
def test_suites(command: Command, old: str, new: str, said: str) -> None:
    assert SUITE.count(old) >= 1
    Path("own.toml").write_text(SUITE.replace(old, new, 1))
    result = command("run", "own.toml", "--isolation", "inline")
    assert (result.code, len(result.err), result.out) == (2, 1, []), result
    require_one_line(result.err[0])
    assert said in result.err[0]


def test_a_suite_for_a_larger_machine_is_read_and_not_run(command: Command) -> None:
    Path("own.toml").write_text("threads = 9999\n" + SUITE)
    for more in ([], ["--isolation", "inline"], ["--cluster", "local"]):
        result = command("run", "own.toml", *more)
        assert (result.code, len(result.err), result.out) == (2, 1, [])
        assert re.search(r"threads of the suite must be at most \d+ here, .* not 9999: run it on a larger machine", result.err[0])
    assert command("run", "own.toml", "--dry-run").code == 0
    assert expand(read_suite("own.toml"), load_registry())[0].threads == 9999


@pytest.mark.parametrize(("old", "new", "said"), PLUGINS, ids=[new.strip() or "nothing" for _, new, _ in PLUGINS])
def test_plugins(folder: Path, old: str, new: str, said: str) -> None:
    assert PLUGIN.count(old) >= 1
    (folder / "solvers").mkdir()
    (folder / "solvers" / "mine.py").write_text(PLUGIN.replace(old, new, 1))
    with pytest.raises(InputError, match=said) as error:
        load_registry(folder)
    require_one_line(str(error.value))
    assert "mine" in str(error.value)


@pytest.mark.parametrize(("call", "said"), CALLS, ids=[f"{number}: {said}" for number, (_, said) in enumerate(CALLS)])
def test_calls(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    require_one_line(str(error.value))
    assert said in str(error.value)
