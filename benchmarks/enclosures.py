"""What `certify` proves, and how long it takes: widths by model and solver, and sizes.

`python -m benchmarks.enclosures` prints two Markdown tables. The first has relative widths, by the answer itself and with a second solve,
of the models of `tests/laws/test_conic_enclosures.py`. Seconds in the second are those of building and solving by CVXPY, and of all that
`certify` adds.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import click
import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.solution import Solution
from tabulate import tabulate

from bench_mtl.enclosures import Enclosure, certify
from bench_mtl.enclosures.programme import Chain
from tests.laws.test_conic_enclosures import MODELS

SOLVERS = ("HIGHS", "CLARABEL", "ECOS", "SCS")


def linear(rows: int, columns: int, in_a_row: int) -> cp.Problem:
    """Return a packing problem: 0 <= x <= 1, and so many numbers above 0 in each row."""
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.choice(columns, in_a_row, replace=False) for _ in range(rows)])
    A = sp.csr_array((rng.random(rows * in_a_row), places, np.arange(rows + 1) * in_a_row), shape=(rows, columns))
    x = cp.Variable(columns)
    return cp.Problem(cp.Maximize((1.0 + rng.random(columns)) @ x), [A @ x <= 0.4 * A.sum(axis=1), x >= 0, x <= 1])


def transport(sources: int, sinks: int) -> cp.Problem:
    rng = np.random.default_rng(0)
    X = cp.Variable((sources, sinks), nonneg=True)
    sums = [cp.sum(X, axis=1) == sinks, cp.sum(X, axis=0) == sources]
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(rng.random((sources, sinks)), X))), sums)


def machine(examples: int, features: int) -> cp.Problem:
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((examples, features)), cp.Variable(features)
    labels = np.sign(A[:, 0] + rng.standard_normal(examples))
    return cp.Problem(cp.Minimize(cp.norm1(w) + cp.sum(cp.pos(1.0 - cp.multiply(labels, A @ w)))))


def lasso(examples: int, features: int) -> cp.Problem:
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((examples, features)), cp.Variable(features)
    return cp.Problem(cp.Minimize(cp.sum_squares(A @ x - A[:, :5].sum(axis=1)) + 3.0 * cp.norm1(x)))


def planted(rows: int, columns: int, in_a_row: int) -> tuple[cp.Problem, Callable[[Chain], Solution]]:
    """Return a linear programme with bounds that is made from an optimal pair, and the pair, with errors of 1e-9, in place of a solver."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, columns, rows * in_a_row)
    A = sp.csr_array((0.1 + rng.random(rows * in_a_row), places, np.arange(rows + 1) * in_a_row), shape=(rows, columns))
    kind, y, reduced = rng.random(columns), rng.random(rows) * (rng.random(rows) < 0.3), rng.random(columns)
    point = np.where(kind < 0.3, 0.0, np.where(kind < 0.6, 1.0, rng.random(columns)))
    low, high = reduced * (point == 0.0), reduced * (point == 1.0)
    x = cp.Variable(columns)
    limits = A @ point + rng.random(rows) * (y == 0.0)
    model = cp.Problem(cp.Minimize((low - high - A.T @ y) @ x), [A @ x <= limits, x >= 0, x <= 1])

    def answer(chain: Chain) -> Solution:
        point_, *duals = (value + 1e-9 * rng.standard_normal(value.shape) for value in (point, y, low, high))
        by_number = dict(zip((constraint.id for constraint in chain.program.constraints), duals, strict=True))
        return Solution("optimal", None, {chain.program.variables[0].id: point_}, by_number, {})

    return model, answer


#: Models by name, each with the solver that answers it.
SIZES: dict[str, tuple[Callable[[], Any], str]] = {
    "linear, 10,000 nonzeros": (lambda: linear(500, 1000, 20), "HIGHS"),
    "transport, 70 x 70": (lambda: transport(70, 70), "HIGHS"),
    "support vector machine, 2,500 columns": (lambda: machine(2400, 50), "HIGHS"),
    "lasso, 2,500 columns": (lambda: lasso(500, 1000), "CLARABEL"),
    "linear, 1,000,000 nonzeros": (lambda: planted(20_000, 10_000, 50), "planted"),
}


@click.command(help=__doc__)
@click.option("--only", default="", help="A part of the names of models.")
def main(only: str) -> None:
    widths = [[name, *cells(name)] for name in MODELS if only in name]
    if widths:
        click.echo(tabulate(widths, ["model", *SOLVERS], tablefmt="github", disable_numparse=True) + "\n")
    sizes = [size(name) for name in SIZES if only in name]
    headers = ["model", "rows", "columns", "nonzeros", "solver", "CVXPY, s", "certify, s", "width"]
    click.echo(tabulate(sizes, headers, tablefmt="github", disable_numparse=True))


def cells(name: str) -> list[str]:
    """Return the widths of a model's enclosures by the answer and by a second solve, and the milliseconds that both took, by solver."""
    make, solvers = MODELS[name]
    texts = []
    for solver in SOLVERS:
        judged = [clocked(make(), solver, judge) for judge in ("answer", "value")] if solver in solvers else []
        both = [" / ".join(f"{enclosure.relative_gap:.0e}" for enclosure, *_ in judged)]
        texts.append(" ".join([*both, f"({' / '.join(f'{1e3 * proving:.0f}' for _, _, proving, _ in judged)} ms)"]) if judged else "")
    return texts


def size(name: str) -> list[str]:
    make, solver = SIZES[name]
    instance = make()
    model, answer = instance if isinstance(instance, tuple) else (instance, Chain.solve)
    enclosure, solving, proving, chain = clocked(model, "HIGHS" if solver == "planted" else solver, "value", answer)
    A = chain.program.apply_parameters(quad_obj=chain.program.P is not None)[-2]
    counts = [f"{count:,}" for count in (*A.shape, A.nnz)]
    return [name, *counts, solver, f"{solving:.1f}", f"{proving:.1f}", f"{enclosure.relative_gap:.0e}"]


def clocked(
    model: cp.Problem, solver: str, judge: str, answer: Callable[[Chain], Any] = Chain.solve
) -> tuple[Enclosure, float, float, Chain]:
    """Return an enclosure, the seconds of CVXPY and its solver, those of the proof, and the chain that was used."""
    seconds, chains = [], []

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Chain, *args: Any, **options: Any) -> Any:
            chains.append(self)
            began = perf_counter()
            try:
                return method(self, *args, **options)
            finally:
                seconds.append(perf_counter() - began)

        return call

    originals = Chain.__init__, Chain.solve
    Chain.__init__, Chain.solve = timed(originals[0]), timed(answer)  # type: ignore[method-assign]
    try:
        began = perf_counter()
        enclosure = certify(model, solver=solver, judge=judge)
        return enclosure, sum(seconds), perf_counter() - began - sum(seconds), chains[0]
    finally:
        Chain.__init__, Chain.solve = originals  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
