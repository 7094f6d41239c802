"""The solvers on an accelerator, on JAX's processor back end: their thresholds, their steps, their proofs, and what they refuse."""

import importlib
import sys
from collections.abc import Callable
from contextlib import nullcontext
from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import InputError, Iterate, Problem, Status, TaskData, run
from bench_mtl.core.devices import GPU
from bench_mtl.model.forms import Hinges, LinearForm
from bench_mtl.model.norms import L1, L12, L1Inf, Norm, Trace
from bench_mtl.problems import L12GLM, BallHinge, L1BallGLM, L1InfGLM, L1InfHinge, L12Hinge, SparseLowRank, TraceNormGLM
from bench_mtl.solvers import AcceleratedGradient, Auto, GradientStepper, InteriorPoint, WorkingSet
from bench_mtl.solvers.accelerator import AcceleratorGradient, AcceleratorInteriorPoint, AcceleratorPDHG, device
from bench_mtl.solvers.accelerator import solver as accelerator_solver
from bench_mtl.solvers.projected_gradient import State as HostState

needs_jax = pytest.mark.skipif(device.version() == "not installed", reason="JAX is not installed: pip install '.[accelerator]'")

NORMS: dict[str, Norm] = {"l1inf": L1Inf(), "l1": L1(), "l12": L12(), "tasks": L1(balls="task"), "trace": Trace()}
MATRICES: dict[str, Callable[[np.random.Generator], Any]] = {
    "tall": lambda rng: rng.standard_normal((60, 7)),
    "wide": lambda rng: rng.standard_cauchy((5, 40)),
    "tied": lambda rng: rng.integers(-2, 3, (20, 6)).astype(float),
    "one column": lambda rng: rng.standard_normal((30, 1)),
    "tiny": lambda rng: 1e-9 * rng.standard_normal((20, 6)),
}


def on_device(function: Any, kind: Any, *arguments: Any) -> Any:
    """Return what a compiled function gives for arrays of the host."""
    return device.call(function, kind, *device.put(arguments, device.first_device("cpu")))


@pytest.mark.numerics  # JAX takes its factorisations on a processor from LAPACK
@needs_jax
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("norm", NORMS)
def test_thresholds_are_those_of_the_projections(norm: str, name: str) -> None:
    from bench_mtl.solvers.accelerator.kernels import thresholds

    V = MATRICES[name](np.random.default_rng(0))
    size, top = NORMS[norm].value(V), np.abs(V).max()
    start = thresholds.Thresholds(np.float64(0.0), np.zeros(len(V) if norm == "l1inf" else V.shape[1] if norm == "tasks" else 1))
    for share in (0.5, 0.01, 0.9, 0.0, 1.0, 0.3, 2.0, 0.6):  # the search begins where the one before has ended
        radius = share * size
        expected = NORMS[norm].project(V, radius)
        radii = np.full(V.shape[1], radius) if norm == "tasks" else np.float64(radius)
        projected, start = on_device(thresholds.project, norm, V, radii, start)
        assert np.allclose(projected, expected, rtol=1e-10, atol=1e-12 * top), share
        if norm not in ("tasks", "trace"):
            projected, _ = on_device(thresholds.prox, norm, V, np.float64(share * top), start)
            assert np.allclose(projected, NORMS[norm].prox(V, share * top), rtol=1e-10, atol=1e-12 * top), share


RNG = np.random.default_rng(0)
X, TRUTH = RNG.standard_normal((60, 20)), RNG.standard_normal((20, 4)) * (np.arange(20) < 6)[:, None]
REAL = X @ TRUTH + 0.5 * RNG.standard_normal((60, 4))
OWN = [slice(0, 15), slice(15, 24), slice(24, 44), slice(44, 60)]
SPARSE = X * (np.abs(X) > 1.0)
LAYOUTS = {
    "shared": lambda Y: TaskData.shared(X, Y),
    "cube": lambda Y: TaskData.per_task([X[15 * k : 15 * k + 15] for k in range(4)], [Y[15 * k : 15 * k + 15, k] for k in range(4)]),
    "unequal": lambda Y: TaskData.per_task([X[rows] for rows in OWN], [Y[rows, k] for k, rows in enumerate(OWN)]),
    "sparse": lambda Y: TaskData.shared(sp.csr_array(SPARSE), Y),
    "blocks": lambda Y: TaskData.per_task([sp.csr_array(SPARSE[rows]) for rows in OWN], [Y[rows, k] for k, rows in enumerate(OWN)]),
}


def problems() -> dict[str, Problem]:
    """Return every loss under every norm; on tiny instances the laws try what else there is."""
    chosen: dict[str, Problem] = {}
    for layout, data in LAYOUTS.items():
        real, labels = data(REAL), data(np.sign(REAL))
        chosen[f"l1inf_hinge-{layout}"] = L1InfHinge(labels, radius=2.0)
        chosen[f"l1inf_glm-{layout}"] = L1InfGLM(real, penalty="0.2 max")
        chosen[f"split-{layout}"] = SparseLowRank(real, penalty=5.0, radius=4.0)
        chosen[f"ball_hinge-{layout}"] = BallHinge(labels, radius=1.0)
        if layout == "shared":
            chosen |= {f"hinge penalised by {hinge.name}": hinge(labels, penalty="0.2 max") for hinge in (L1InfHinge, L12Hinge)}
            chosen |= {f"squares in a ball of {fit.name}": fit(real, radius=2.0) for fit in (L1InfGLM, L12GLM, L1BallGLM)}
            fits = (L1InfGLM, L12GLM, L1BallGLM)
            chosen |= {f"logistic penalised by {fit.name}": fit(labels, loss="logistic", penalty="0.2 max") for fit in fits}
        if layout in ("unequal", "blocks"):
            chosen[f"logistic-{layout}"] = L1InfGLM(labels, loss="logistic", penalty="0.2 max")
    # Of other weights in each task, or they would be centred on the host.
    weighted = TaskData.shared(X + 1.0, REAL + 3.0, weights=RNG.uniform(0.5, 2.0, REAL.shape))
    chosen["free intercepts"] = L1InfGLM(weighted, penalty="0.2 max", intercept=True)
    assert chosen["free intercepts"].form(LinearForm).has_intercept
    return chosen


PROBLEMS = problems()
#: Layouts that the interior points do not take.
REFUSED = "unequal", "blocks"
#: Every loss, layout and bound that they do take; a kind compiles for seconds, and tests/laws has more of them.
INTERIOR = (
    "l1inf_hinge-cube", "l1inf_glm-sparse",
    "hinge penalised by l1inf_hinge", "squares in a ball of l1inf_glm", "logistic penalised by l1inf_glm",
)  # fmt: skip


def solver_of(problem: Problem) -> AcceleratorGradient | AcceleratorPDHG:
    return AcceleratorPDHG() if isinstance(problem.form(LinearForm), Hinges) else AcceleratorGradient()


#: Every loss and every norm, and every layout with hinges and squares: what is split or in balls of its own has three layouts less.
STATED = [name for name in PROBLEMS if not (name.startswith(("split", "ball_hinge")) and name.endswith(("cube", "sparse", "blocks")))]


@needs_jax
@pytest.mark.parametrize("name", STATED)
def test_the_gap_on_the_device_is_the_one_that_is_proven(name: str) -> None:
    """Proven by the problem, on the host; and what the device says of the last iterate is what the certificate says of it."""
    problem = PROBLEMS[name]
    solver = solver_of(problem).aimed_at(1e-9)
    last = next(iterate for iterate in islice(solver.steps(problem), 2000) if iterate.claim is not None and iterate.claim <= 1e-9)
    certificate = problem.certify(Iterate(last.primal, last.dual))
    assert certificate.relative_gap <= 1.01e-9
    assert certificate.infeasibility <= 1e-12
    loose = next(iterate for iterate in islice(solver_of(problem).aimed_at(1e-2).steps(problem), 2000) if (iterate.claim or 1.0) <= 1e-2)
    assert problem.certify(Iterate(loose.primal, loose.dual)).relative_gap <= loose.claim * (1.0 + 1e-6) + 1e-12


@needs_jax
@pytest.mark.parametrize("name", ["l1inf_glm-shared", "split-shared", *(name for name in PROBLEMS if name.endswith("_glm"))])
def test_steps_are_those_on_the_host(name: str) -> None:
    problem = PROBLEMS[name]
    stepper = AcceleratorGradient().stepper(problem)
    first = stepper.start(Iterate(problem.start_point()))
    host = GradientStepper(AcceleratedGradient(restart="gradient"), problem, problem.prox, restart="gradient")
    now = HostState(problem.start_point(), problem.start_point(), float(first.arrays.lipschitz))
    second = stepper.step(first)
    for _ in range(stepper.iterate(second).step):
        now = host.step(now)  # type: ignore[assignment]
    assert np.allclose(stepper.iterate(second).primal, now.point, rtol=1e-10, atol=1e-12)
    assert float(first.arrays.lipschitz) >= 0.95 * problem.lipschitz()


@needs_jax
@pytest.mark.parametrize("name", INTERIOR)
def test_interior_points_come_to_the_optimum_of_those_on_the_host(name: str) -> None:
    problem = PROBLEMS[name]
    *_, last = islice(AcceleratorInteriorPoint().aimed_at(1e-12).steps(problem), 60)
    expected = min(problem.objective(each.primal) for each in islice(InteriorPoint().steps(problem), 60))
    assert problem.objective(last.primal) == pytest.approx(expected, rel=1e-10)
    record = run(problem, AcceleratorInteriorPoint(), tolerance=1e-8, limits=20.0)
    assert record.status is Status.VERIFIED
    assert record.samples[-1].step <= 30


DRAW = np.random.default_rng(0)
#: Problems whose optimum is almost 0, and whose optimum is at 0, with the entries of a start.
AT_ZERO = {
    "almost 0": (TaskData.shared(DRAW.standard_normal((20, 60)), np.sign(DRAW.standard_normal((20, 3)))), {"radius": 1e3}, 0.0),
    "zero is optimal": (
        TaskData.shared(np.array([[-1.0], [0.0], [1.0], [0.0]]), np.array([[1.0], [1.0], [1.0], [-1.0]])), {"penalty": 0.05}, 0.5,
    ),
}  # fmt: skip


@needs_jax
@pytest.mark.parametrize(
    ("name", "solver"), [*((name, AcceleratorInteriorPoint()) for name in AT_ZERO), ("zero is optimal", AcceleratorGradient())]
)
def test_optima_of_zero_are_proven(name: str, solver: Any) -> None:
    data, bound, start = AT_ZERO[name]
    problem = L1InfGLM(data, loss="logistic", **bound)
    record = run(problem, solver, tolerance=1e-6, limits=20.0, start=np.full(problem.point_shape, start))
    assert record.status is Status.VERIFIED, record.reason


@needs_jax
def test_a_gap_is_stated_with_its_dual_point() -> None:
    problem = PROBLEMS["l1inf_hinge-shared"]
    for iterate in islice(AcceleratorPDHG(target=1e-12).steps(problem), 60):
        assert iterate.claim is None or iterate.claim == np.inf or iterate.dual is not None


def test_interior_points_refuse_tasks_of_unlike_size_and_sparse_data_of_each() -> None:
    for layout in REFUSED:
        reason = AcceleratorInteriorPoint().incompatibility(PROBLEMS[f"l1inf_hinge-{layout}"])
        assert reason == "accelerator_interior_point takes one matrix for all tasks, or dense matrices of equally many examples"


WIDE = RNG.standard_normal((80, 300))
WIDE_SCORES = WIDE @ (RNG.standard_normal((300, 3)) * (np.arange(300) % 20 == 0)[:, None])
WIDE_TASKS = [slice(0, 30), slice(30, 60), slice(50, 80)]
#: Problems with more rows than the first set has.
OF_SETS: dict[str, Problem] = {
    "sparse hinge": L1InfHinge(TaskData.shared(sp.csr_array(WIDE * (np.abs(WIDE) > 1.0)), np.sign(WIDE_SCORES)), radius=2.0),
    "logistic": L1InfGLM(TaskData.shared(WIDE, np.sign(WIDE_SCORES)), loss="logistic", penalty="0.1 max"),
    "own examples": L1InfGLM(
        TaskData.per_task([WIDE[each] for each in WIDE_TASKS], [WIDE_SCORES[each, k] for k, each in enumerate(WIDE_TASKS)]),
        penalty="0.1 max",
    ),
}


@needs_jax
@pytest.mark.parametrize("name", OF_SETS)
def test_rows_come_and_go_as_they_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench_mtl.solvers.accelerator import interior

    monkeypatch.setattr(interior, "_FIRST", 8)
    problem, solver = OF_SETS[name], AcceleratorInteriorPoint().aimed_at(1e-12)
    stepper = solver.stepper(problem)
    states = [stepper.start(Iterate(problem.start_point()))]
    while states[-1] is not None and len(states) < 60:
        states.append(stepper.step(states[-1]))
    reached = min((state for state in states if state is not None and state.shows_dual), key=lambda state: float(state.arrays.gap))
    sizes = {int(state.arrays.count) for state in states if state is not None}
    assert len(sizes) > 1
    assert max(sizes) < 300
    best = stepper.iterate(reached)
    expected = min(problem.objective(each.primal) for each in WorkingSet().steps(problem))
    assert problem.objective(best.primal) == pytest.approx(expected, rel=1e-10)
    assert problem.certify(Iterate(best.primal, best.dual)).relative_gap <= 1e-8
    iterates = list(islice(solver.steps(problem), 9))
    assert np.array_equal(list(islice(solver.resume(problem, iterates[6]), 3))[2].primal, iterates[8].primal)
    monkeypatch.setattr(interior, "obstacle", lambda device, needed: "needs more than there is")
    notes = [iterate.note for iterate in islice(solver.steps(problem), 12)]
    assert max(sizes) <= 32 or any("without rows that it needs more" in note for note in notes)


@needs_jax
def test_a_run_compiles_on_no_clock_and_changes_no_setting() -> None:
    import jax

    problem = L1InfHinge(TaskData.shared(X[:41], np.sign(REAL[:41])), radius=1.0)  # of a shape that no other test has
    record = run(problem, AcceleratorPDHG(), tolerance=1e-6, limits=20.0)
    assert record.status is Status.VERIFIED
    info = dict(record.info)
    assert record.times.solve < float(info["compiled while the clock stood"].split()[0])
    mebibytes, _, _, seconds, _ = info["moved to the device"].split()
    assert float(mebibytes) == pytest.approx((41 * 20 + 41 * 4 + 1 + 1) * 8 / 2**20, rel=1e-3)
    assert 0.0 < float(seconds) < record.times.solve
    assert not jax.config.jax_enable_x64
    assert jax.config.jax_default_matmul_precision is None
    assert jax.numpy.ones(2).dtype == np.float32


def refusal(**options: Any) -> str:
    return str(AcceleratorPDHG(**options).incompatibility(PROBLEMS["l1inf_hinge-shared"]))


@needs_jax
def test_what_there_is_not_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    if all(each.platform == "cpu" for each in jax.devices()):
        assert refusal(device="gpu").startswith("accelerator_pdhg_gpu has no device 'gpu' here: JAX knows cpu")
        with pytest.raises(InputError, match="no device 'gpu'"):
            AcceleratorPDHG(device="gpu").warm_up()
    with monkeypatch.context() as patch:
        patch.setattr(device, "free_bytes", lambda _: 1000)
        assert "GiB on the device, which has 9.31e-07 GiB free" in refusal()
    for name, what in (("CUBLAS_EMULATE_DOUBLE_PRECISION", "emulated float64"), ("NVIDIA_TF32_OVERRIDE", "TF32")):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            assert refusal().endswith(f"computes in float64 alone, and {name}=1 asks for {what}: unset it")
    with monkeypatch.context() as patch:
        patch.setattr(device, "_OLDEST", (99, 1))
        assert "needs jax 99.1 or later" in refusal()
    with monkeypatch.context() as patch:
        patch.setattr(device, "version", lambda: "jax that is broken")
        patch.setitem(sys.modules, "jax", None)
        assert "JAX cannot be imported" in refusal()
    with monkeypatch.context() as patch:
        words = "jaxlib version 0.9.0 is older\nthan jax version 0.10.2 needs"
        patch.setattr(importlib, "import_module", lambda name: (_ for _ in ()).throw(RuntimeError(words)))
        assert refusal().endswith("cannot be used, for JAX cannot be imported: jaxlib version 0.9.0 is older than jax version 0.10.2 needs")
    with monkeypatch.context() as patch:
        patch.setattr(jax, "enable_x64", lambda on: nullcontext())
        assert refusal().endswith("computes in float64 alone, which JAX makes float32 of on cpu (cpu)")
    with pytest.raises(InputError, match="float64 alone, and has float32"):
        device.put(np.ones(2, dtype=np.float32), jax.devices("cpu")[0])


@needs_jax
@pytest.mark.parametrize("when", ["begin", "advance"])
def test_memory_that_runs_out_is_an_end_in_one_line(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    import jax

    def call(function: Any, kind: Any, *arguments: Any) -> Any:
        if function.__name__ == when:
            with device.on_device():
                raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12 bytes.\nmore")
        return device.call(function, kind, *arguments)

    monkeypatch.setattr(accelerator_solver, "call", call)
    record = run(PROBLEMS["l1inf_hinge-shared"], AcceleratorPDHG(), tolerance=1e-9)
    assert record.status is Status.MEMORY
    words = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12 bytes. more"
    assert record.reason.startswith(f"out of memory: that of the device, {words}")
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"), device.on_device():
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")


@needs_jax
def test_auto_takes_a_device_where_it_is_told_to_and_nothing_else_then(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Auto(device="cpu")
    for name in ("l1inf_hinge-shared", "l1inf_glm-blocks", "split-cube"):
        record = run(PROBLEMS[name], told, tolerance=1e-6, limits=20.0)
        assert record.status is Status.VERIFIED, name
        picked = "accelerator_interior_point" if name == "l1inf_hinge-shared" else "accelerator_gradient"
        assert str(dict(record.info)["note"]).startswith(f"{picked}; on cpu")
        assert "moved to the device" in dict(record.info)
        assert "moved to the device" not in dict(run(PROBLEMS[name], Auto(), tolerance=1e-6, limits=20.0).info), name
    assert told.label == "auto device=cpu"
    trace = TraceNormGLM(LAYOUTS["shared"](REAL), penalty=1.0)
    assert str(told.incompatibility(trace)).startswith("auto device=cpu knows no solver for trace_norm_glm: ")
    assert Auto().incompatibility(trace) is None
    monkeypatch.setattr(device, "_first", lambda name: (_ for _ in ()).throw(RuntimeError("no such back end")))
    for name in ("l1inf_hinge-shared", "l1inf_glm-shared"):
        assert "has no device 'gpu' here: JAX knows " in str(Auto(device="gpu").incompatibility(PROBLEMS[name]))
    monkeypatch.setattr(device, "gpus", lambda: [GPU("NVIDIA H100", 80 * 2**30, 2**30)])
    assert refusal(device="gpu").endswith("; for NVIDIA H100 install jax[cuda12] or jax[cuda13]")
    with pytest.raises(InputError, match="device must be"):
        Auto(device="tpu")


def test_without_jax_both_are_skipped_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "version", lambda: "not installed")
    assert refusal() == "accelerator_pdhg is not installed: pip install '.[accelerator]'"
    record = run(PROBLEMS["logistic penalised by l1_ball_glm"], AcceleratorGradient())
    assert record.status is Status.SKIPPED
    assert ".[accelerator]" in record.reason


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (L1InfHinge(TaskData.shared(X, np.sign(REAL)), radius=1.0, intercept=True), "takes no free intercept"),
        (L1InfGLM(TaskData.shared(X, np.sign(REAL)), loss="logistic", penalty=1.0, intercept=True), "with the squared loss alone"),
        (L1BallGLM(TaskData.shared(X, REAL), penalty=1.0, nonneg=True), "no sign constraint"),
    ],
)
def test_data_that_do_not_fit_are_refused(problem: Problem, words: str) -> None:
    assert words in str(solver_of(problem).incompatibility(problem))


@needs_jax
@pytest.mark.parametrize(("name", "entry"), [("l1inf_glm-shared", "lipschitz"), ("l1inf_hinge-shared", "weight")])
def test_a_run_ends_where_its_objective_is_no_finite_number(name: str, entry: str) -> None:
    from bench_mtl.solvers.accelerator.kernels import parts

    data = parts.Data((X,), REAL, np.ones((1, 1)), np.float64(1.0))
    kind, dual = parts.Kind("squared", "l1inf", is_penalty=False, layout="shared"), (REAL, X.T @ REAL)
    assert np.isfinite(float(on_device(parts.relative_gap, kind, data, (TRUTH, X @ TRUTH), dual)))
    assert float(on_device(parts.relative_gap, kind, data, (TRUTH, 1e200 * X @ TRUTH), dual)) == np.inf
    stepper = solver_of(PROBLEMS[name]).stepper(PROBLEMS[name])
    first = stepper.start(Iterate(PROBLEMS[name].start_point()))
    assert stepper.step(first) is not None
    assert stepper.step(first._replace(arrays=first.arrays._replace(**{entry: np.float64("nan")}))) is None
