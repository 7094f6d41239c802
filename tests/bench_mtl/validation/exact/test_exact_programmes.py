"""Bounds on hinges are held to the optimum of their linear programme, found in rational numbers by another hand (QSopt_ex)."""

import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl import TaskData, load_registry, run
from bench_mtl.core.types import Array, Limits, Tolerance
from bench_mtl.problems.l1inf_hinge import L1InfHinge

SOLVER = shutil.which("esolver")
SOLVERS = ("auto", "pdhg", "interior_point", "projected_subgradient", "generated_lp")
KINDS = ("normal", "whole", "twins", "scaled", "small", "sparse")
#: Intercepts are free numbers, and a penalty is a price of the norm.
FORMS = ("radius", "penalty", "radius with intercepts", "penalty with intercepts")


def term(value: float, variable: str) -> str:
    """A term of a constraint, exactly."""
    exact = Fraction(value)
    return f"{'+' if exact >= 0 else '-'} {abs(exact)} {variable}"


def programme(X: Array, Y: Array, radius: float | None, penalty: float | None, *, intercept: bool) -> str:
    """The sum of all hinges under, or with, an l1,inf norm, in the format of CPLEX with rational numbers."""
    examples, tasks, features = range(len(X)), range(Y.shape[1]), range(X.shape[1])
    slacks = [f"+ s_{i}_{k}" for i in examples for k in tasks]
    price = [] if penalty is None else [term(penalty, f"t_{j}") for j in features]
    lines = ["Problem", "hinge", "Minimize", f"obj: {' '.join([*slacks, *price])}", "Subject"]
    for i in examples:
        for k in tasks:
            margin = [term(float(Y[i, k] * X[i, j]), f"w_{j}_{k}") for j in features if X[i, j]]
            margin += [term(float(Y[i, k]), f"b_{k}")] if intercept else []
            lines.append(f"h_{i}_{k}: s_{i}_{k} {' '.join(margin)} >= 1")
    lines += [f"{sign}_{j}_{k}: t_{j} {'-' if sign == 'u' else '+'} w_{j}_{k} >= 0" for j in features for k in tasks for sign in "ul"]
    if radius is not None:
        lines.append(f"c: {' + '.join(f't_{j}' for j in features)} <= {Fraction(radius)}")
    free = [f"w_{j}_{k} free" for j in features for k in tasks] + ([f"b_{k} free" for k in tasks] if intercept else [])
    return "\n".join([*lines, "Bounds", *free, "End", ""])


def optimum(text: str, folder: Path) -> Fraction:
    """The optimal value of a linear programme, exactly."""
    (folder / "hinge.lp").write_text(text)
    command = [str(SOLVER), "-L", "-O", str(folder / "answer.txt"), str(folder / "hinge.lp")]
    subprocess.run(command, capture_output=True, timeout=300, check=False)
    answer = (folder / "answer.txt").read_text()
    assert "status OPTIMAL" in answer
    value = re.search(r"Value = (\S+)", answer)
    assert value is not None
    return Fraction(value[1])


def instance(kind: str, form: str, rng: np.random.Generator) -> tuple[Array, Array, dict[str, Any]]:
    n, d, m = int(rng.integers(8, 30)), int(rng.integers(2, 8)), int(rng.integers(2, 4))
    X = rng.integers(-3, 4, size=(n, d)).astype(float) if kind == "whole" else rng.standard_normal((n, d))
    if kind == "twins":
        X[1::2] = X[::2][: len(X[1::2])] * (1.0 + 2.0**-52)
    factors: dict[str, Any] = {"scaled": np.exp(rng.uniform(-12.0, 12.0, d)), "small": 1e-6, "sparse": rng.random((n, d)) < 0.3}
    X = X * factors.get(kind, 1.0)
    Y = np.where(rng.random((n, m)) < 0.5, 1.0, -1.0)
    Y[0], Y[1] = 1.0, -1.0  # both in every task
    size = float(np.abs(X).mean()) or 1.0
    amount = float(np.exp(rng.uniform(-3.0, 3.0))) / size / d if "radius" in form else float(np.exp(rng.uniform(-2.0, 2.0))) * size
    return X, Y, {form.partition(" ")[0]: amount}


@pytest.mark.slow
@pytest.mark.skipif(SOLVER is None, reason="QSopt_ex is not installed")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_between_all_bounds(kind: str, form: str, tmp_path: Path) -> None:
    registry, rng = load_registry(), np.random.default_rng([KINDS.index(kind), FORMS.index(form)])
    for _ in range(2):
        X, Y, parameters = instance(kind, form, rng)
        intercept = "intercepts" in form
        exact = optimum(programme(X, Y, parameters.get("radius"), parameters.get("penalty"), intercept=intercept), tmp_path)
        problem = L1InfHinge(TaskData.shared(X, Y), reduction="sum", intercept=intercept, **parameters)
        for name in SOLVERS:
            solver = registry.solver(name)
            if solver.incompatibility(problem) is None:
                samples = run(problem, solver, tolerance=Tolerance(1e-12), limits=Limits(seconds=10.0, iterations=300)).samples
                assert samples, name
                for sample in samples:
                    assert Fraction(sample.certificate.dual) <= exact <= Fraction(sample.certificate.primal), (name, sample, float(exact))
