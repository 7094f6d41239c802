"""Generic solvers on a GPU: their interfaces with stand-ins, MPAX on JAX's processor back end where it is installed, and refusals."""

import ctypes
import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from bench_mtl import InputError, Status, run
from bench_mtl.core import devices
from bench_mtl.core.devices import GPU, gpus, no_gpu
from bench_mtl.data import synthetic_l1inf
from bench_mtl.problems import L1InfGLM, L1InfHinge
from bench_mtl.solvers.conic import Conic
from bench_mtl.solvers.conic.backend import Package
from bench_mtl.solvers.conic.table import BACKENDS

HINGE = L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=10), radius=2.0)
SQUARES = L1InfGLM(synthetic_l1inf(tasks=3, features=8, examples=10), penalty="0.2 max")

needs_mpax = pytest.mark.skipif(importlib.util.find_spec("mpax") is None, reason="MPAX is not installed")


@needs_mpax
@pytest.mark.parametrize("method", [None, "halpern"])
def test_mpax_proves_gaps_that_float32_does_not_and_compiles_on_no_clock(method: str | None) -> None:
    import jax

    record = run(HINGE, Conic(backend="MPAX", method=method), tolerance=1e-7, limits=60.0)
    assert record.status is Status.VERIFIED, record.reason
    info = dict(record.info)
    assert float(info["compiled while the clock stood"].split()[0]) > record.times.setup + record.times.solve
    assert "MiB in" in info["moved to the device"]
    assert info["backend_solve_seconds"] <= record.times.solve + record.times.setup
    assert not jax.config.jax_enable_x64


@needs_mpax
def test_mpax_takes_squares_with_average_steps_alone() -> None:
    assert run(SQUARES, Conic(backend="MPAX"), tolerance=1e-4, limits=60.0).status is Status.VERIFIED
    assert "MPAX does not support the squares" in str(Conic(backend="MPAX", method="halpern").incompatibility(SQUARES))


class Model:
    """What cuPDLPx is to its users, by SciPy."""

    ModelSense = 1

    def __init__(self, costs: Any, rows: Any, lower: Any, upper: Any) -> None:
        assert isinstance(rows, sp.spmatrix)
        self._programme, self.params = (costs, rows, lower, upper), {}
        self.X = self.Pi = self.Runtime = self.IterCount = None
        self.Status: Any = "UNSPECIFIED"

    def setParams(self, **options: Any) -> None:  # noqa: N802 (its name)
        self.params |= options

    def optimize(self) -> None:
        assert self.params["OutputFlag"] is False
        assert self.params["OptimalityTol"] == self.params["FeasibilityTol"]
        if self.params["TimeLimit"] < 1e-3:
            self.Status = "TIME_LIMIT"
            return
        costs, rows, lower, upper = self._programme
        equal = lower == upper
        answer = linprog(costs, -rows[~equal], -lower[~equal], rows[equal], lower[equal], bounds=(None, None))
        self.X, self.Pi, self.Status, self.Runtime, self.IterCount = answer.x, np.zeros(len(lower)), 0, 1e-6, answer.nit
        self.Pi[~equal], self.Pi[equal] = -answer.ineqlin.marginals, answer.eqlin.marginals


@pytest.fixture
def cupdlpx(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package and a GPU, of which a programme is only told."""
    module = ModuleType("cupdlpx")
    module.Model = Model  # type: ignore[attr-defined]
    module.PDLP = SimpleNamespace(OPTIMAL=0, PRIMAL_INFEASIBLE=1, DUAL_INFEASIBLE=2, TIME_LIMIT=3)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupdlpx", module)
    monkeypatch.setattr(Package, "is_installed", True)
    monkeypatch.setattr(Package, "version", "0.3.0")
    monkeypatch.setattr(devices, "gpus", lambda: [GPU("a", 1, 1)])


@pytest.mark.usefixtures("cupdlpx")
def test_cupdlpx_is_given_a_linear_programme_and_its_answer_is_certified() -> None:
    record = run(HINGE, Conic(backend="CUPDLPX"), tolerance=1e-6, limits=20.0)
    assert record.status is Status.VERIFIED, record.reason
    assert record.samples[-1].step > 0
    assert record.times.setup > 0.0
    solver = Conic(backend="CUPDLPX")
    assert solver.solve(solver.compile(solver.build(HINGE)), 1e-6, 1e-4).out_of_time
    assert "CUPDLPX does not support the squares" in str(solver.incompatibility(SQUARES))


ON_GPU = [("MOREAU", "gpu"), ("QOCO", "gpu"), ("CUPDLPX", None), ("CUOPT", None), ("CUOPT", "pdlp"), ("CUOPT", "barrier"), ("MPAX", "gpu")]


@pytest.mark.parametrize(("backend", "method"), ON_GPU)
def test_what_needs_a_gpu_is_skipped_by_name_without_one(monkeypatch: pytest.MonkeyPatch, backend: str, method: str | None) -> None:
    solver = Conic(backend=backend, method=method)
    if backend in ("CUPDLPX", "CUOPT", "MPAX") and importlib.util.find_spec(backend.lower()) is None:
        assert f"{backend} is not installed (package " in str(solver.incompatibility(HINGE))
        assert solver.version == "not installed"
    monkeypatch.setattr(Package, "is_installed", True)
    monkeypatch.setattr("bench_mtl.solvers.conic.solver.missing_cones", lambda *given: [])
    monkeypatch.setattr(devices, "gpus", list)
    reason = str(solver.incompatibility(HINGE))
    assert reason.startswith(f"{solver.label} needs an NVIDIA GPU, and there is none here" if backend != "MPAX" else f"{solver.label} ")
    assert "GPU" in reason or "gpu" in reason
    with pytest.raises(InputError, match=solver.label):
        solver.warm_up()


def test_every_method_on_a_gpu_differs_from_the_usual_one_in_its_options() -> None:
    for name, backend in BACKENDS.items():
        for method, details in backend.methods.items():
            if method.endswith("gpu"):
                assert details.device is not None, name
                assert all(backend.fixed.get(option) != value for option, value in details.options.items()), name


class Library:
    """NVIDIA's library of management with two GPUs."""

    code = 0

    def nvmlInit_v2(self) -> int:  # noqa: N802 (its name)
        return self.code

    def nvmlShutdown(self) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, k: int, device: Any) -> int:  # noqa: N802
        device._obj.value = k + 1
        return 0

    def nvmlDeviceGetName(self, device: Any, name: Any, longest: int) -> int:  # noqa: N802
        name.value = b"GPU %d" % device.value
        return 0

    def nvmlDeviceGetMemoryInfo(self, device: Any, memory: Any) -> int:  # noqa: N802
        memory._obj.total, memory._obj.free = 80 * 2**30, 2**30
        return 0


def test_gpus_are_those_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    assert list(map(str, gpus())) == [f"GPU {k}, 80 GiB, of which 1 are free" for k in (1, 2)]
    assert no_gpu() is None
    monkeypatch.setattr(Library, "code", 9)
    assert gpus() == []
    monkeypatch.setattr(Library, "code", 0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert gpus() == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError("no such library")))
    assert no_gpu() == "needs an NVIDIA GPU, and there is none here"
