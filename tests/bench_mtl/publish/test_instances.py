"""Instances as files: the optimum of what is read back is that of the problem, by readers that share no code with the writers."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from shown_results import fill, run

from bench_mtl import Capability, Certificate, Iterate, TaskData, load_registry, make_problem
from bench_mtl.data import read_npz
from bench_mtl.data.synthetic import synthetic_l1inf
from bench_mtl.publish.cones import cone_programme, to_cbf, to_mps
from bench_mtl.publish.instances import MOST, attachments, npz
from bench_mtl.results.loading import read_results

REGISTRY = load_registry()

#: Families whose models have a kind of cone.
CONES = {"l1inf_glm": "Q", "trace_norm_glm": "PSDCON", "portfolio": "EXP"}


def read_cbf(text: str) -> dict[str, list[list[str]]]:
    """Return the sections of a file in the Conic Benchmark Format, each as its lines in words."""
    sections = [block.splitlines() for block in text.split("\n\n")]
    return {lines[0]: [line.split() for line in lines[1:]] for lines in sections if not lines[0].startswith("#")}


def optimum_of_cbf(parts: dict[str, list[list[str]]]) -> float:
    """Return the optimum of such a file, by a model that is written down again row by row."""
    import cvxpy as cp

    def entries(name: str) -> list[tuple[list[int], float]]:
        """The places and values of a section, whose first line is their number."""
        count, *lines = parts.get(name, [["0"]])
        assert int(count[0]) == len(lines)
        return [(list(map(int, line[:-1])), float(line[-1])) for line in lines]

    assert parts["OBJSENSE"] == [["MIN"]]
    x = cp.Variable(int(parts["VAR"][0][0]))
    objective = sum(value * x[j] for (j,), value in entries("OBJACOORD")) + float(parts.get("OBJBCOORD", [["0"]])[0][0])
    (rows, _), *cones = parts.get("CON", [["0", "0"]])
    A, b = np.zeros((int(rows), x.size)), np.zeros(int(rows))
    for (i, j), value in entries("ACOORD"):
        A[i, j] += value
    for (i,), value in entries("BCOORD"):
        b[i] += value
    constraints: list[Any] = []
    place = 0
    for cone, size in cones:
        g = A[place : place + int(size)] @ x + b[place : place + int(size)]
        place += int(size)
        if cone == "EXP":
            assert size == "3"
            constraints.append(cp.ExpCone(g[2], g[1], g[0]))
        else:
            constraints.append({"L=": lambda g: g == 0, "L+": lambda g: g >= 0, "Q": lambda g: cp.SOC(g[0], g[1:])}[cone](g))
    assert place == int(rows)
    for number, (size,) in enumerate(parts.get("PSDCON", [["0"]])[1:]):
        matrices = {column: np.zeros((int(size), int(size))) for column in range(-1, x.size)}
        for (k, *column, i, j), value in [*entries("DCOORD"), *entries("HCOORD")]:
            if k == number:
                matrices[column[0] if column else -1][[i, j], [j, i]] = value
        constraints.append(sum((x[column] * matrices[column] for column in range(x.size)), matrices[-1]) >> 0)
    return float(cp.Problem(cp.Minimize(objective), constraints).solve(solver="CLARABEL"))


@pytest.mark.parametrize(("family", "cone"), CONES.items())
def test_a_cone_programme_that_is_read_back_has_the_optimum(family: str, cone: str) -> None:
    problems = list(REGISTRY.problem(family).examples(np.random.default_rng(0)))
    for problem in [each for each in problems if Capability.CONIC in each.offers][:2]:
        model = problem.to_cvxpy(next(iter(problem.conic_forms)))
        parts = read_cbf(to_cbf(cone_programme(model), "a comment").decode())
        assert optimum_of_cbf(parts) == pytest.approx(model.problem.solve(solver="CLARABEL"), rel=1e-5, abs=1e-7)
        assert cone in {*parts, *(line[0] for line in parts["CON"][1:])}


def test_a_linear_programme_that_is_read_back_has_the_optimum(tmp_path: Path) -> None:
    import highspy

    problem = next(REGISTRY.problem("l1inf_hinge").examples(np.random.default_rng(0)))
    model = problem.to_cvxpy("lp")
    programme = cone_programme(model)
    assert programme.is_linear
    (tmp_path / "x.mps").write_bytes(to_mps(programme, "tiny"))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(tmp_path / "x.mps"))
    highs.run()
    expected = model.problem.solve(solver="CLARABEL")
    assert highs.getInfo().objective_function_value == pytest.approx(expected, rel=1e-6)
    assert optimum_of_cbf(read_cbf(to_cbf(programme, "the same").decode())) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_arrays_can_be_read_as_data(is_shared: bool, is_sparse: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((6, 4)), rng.standard_normal((6, 2))
    form = sparse.csr_array if is_sparse else np.asarray
    data = TaskData.shared(form(X), Y) if is_shared else TaskData.per_task([form(X[:2]), form(X[2:])], [Y[:2, 0], Y[2:, 0]])
    content = npz(data, {"radius": 2.0})
    assert content == npz(data, {"radius": 2.0})
    (tmp_path / "x.npz").write_bytes(content)
    again = read_npz(tmp_path / "x.npz")
    assert (again.design.is_shared, again.design.is_sparse) == (is_shared, is_sparse)
    assert np.array_equal(again.targets, data.targets)
    assert np.array_equal(data.design.stacked().toarray(), again.design.stacked().toarray())
    assert json.loads(bytes(np.load(io.BytesIO(content))["parameters"])) == {"radius": 2.0}


SPEC = {"name": "synthetic_l1inf", "tasks": 2, "features": 4, "examples": 5}


def attached(tmp_path: Path, **more: Any) -> tuple[dict[str, bytes], str]:
    given = {"data": SPEC, "parameters": {"radius": 2.0}, "seed": 0, "dimensions": {"n": 10, "d": 4, "m": 2}, **more}
    results = read_results(fill(tmp_path / "results", run("pg", 1.0, 2.0, **given)))
    return attachments(results.runs, results.samples, REGISTRY, None)


@pytest.fixture(scope="module")
def start() -> Certificate:
    """What the start point of that instance proves."""
    problem = make_problem(REGISTRY.problem("l1inf_hinge"), synthetic_l1inf(tasks=2, features=4, examples=5, seed=0), {"radius": 2.0})
    return problem.certify(Iterate(problem.start_point()))


def test_an_instance_is_written_where_its_start_proves_what_the_rows_have(tmp_path: Path, start: Certificate) -> None:
    files, note = attached(tmp_path / "a", start=(start.primal, start.dual))
    assert (set(files), note) == ({"npz", "mps"}, "")
    assert b"instance_" in files["mps"]
    # the objective at zero is the same for all data with these losses, what it proves is not
    assert attached(tmp_path / "b", start=(start.primal, 0.99 * start.dual))[0] == {}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"dimensions": {"n": 11, "d": 4, "m": 2}}, "it has other dimensions than in the rows"),
        ({"dimensions": {}}, "it was never built for the rows"),
        ({}, "the fingerprint of its data is another than in the rows"),
        ({"data": {"name": "lost"}}, "its data, or its problem, are not to be had where this site was made"),
        ({"parameters": {"radius": -1.0}}, "radius must be"),
    ],
    ids=["dimensions", "never built", "start", "data", "parameters"],
)
def test_an_instance_that_is_not_that_of_the_rows_is_left_out(more: dict[str, Any], why: str, tmp_path: Path) -> None:
    files, note = attached(tmp_path, **more)
    assert files == {}
    assert why in note


@pytest.mark.parametrize(("method", "left"), [("to_cvxpy", {"npz"}), ("certify", set())])
def test_a_problem_that_raises_leaves_its_files_out_and_not_the_site(
    method: str, left: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Certificate
) -> None:
    def raises(*_: Any) -> None:
        raise RuntimeError("/home/somebody/secret")

    monkeypatch.setattr(REGISTRY.problem("l1inf_hinge"), method, raises)
    files, note = attached(tmp_path, start=(start.primal, start.dual))
    assert set(files) == left
    assert note.endswith(": RuntimeError.")


def test_what_is_larger_than_is_written_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Certificate) -> None:
    for what, most, left in (
        ("entries of data", 39, set()),
        ("entries of data over all tasks", 39, {"npz"}),
        ("bytes of a file", 10, set()),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(MOST, what, most)
            files, note = attached(tmp_path / what, start=(start.primal, start.dual))
        assert set(files) == left
        assert f"{what}, and at most {most} are written" in note
