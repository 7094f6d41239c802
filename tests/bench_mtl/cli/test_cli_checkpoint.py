"""`bench-mtl solve --checkpoint` and `--resume`: a run that is cut off goes on where it was, and nothing else goes on from it."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl.cli.checkpoints import Keeper
from bench_mtl.core.types import Iterate
from bench_mtl.engine.checkpoint import Checkpoint, read_checkpoint
from bench_mtl.model.solver_state import entries_of

Command = Callable[..., Any]

#: The real one, which `command` takes away from commands in this process.
set_handler = signal.signal

DATA = ["--data", "synthetic_l1inf", "--data-option", "tasks=3", "--data-option", "features=8", "--data-option", "examples=40"]
HINGE = ["solve", "l1inf_hinge", "smoothed_gradient", *DATA, "--param", "radius=8.0", "--target", "1e-15"]

SPLIT = ["solve", "sparse_low_rank", "accelerated_gradient", *DATA, "--param", "radius=8.0", "--param", "penalty=0.5"]
SPLIT += ["--option", "gram=never", "--target", "1e-15"]

#: A problem that loses what it computes on at a gradient of this number, and a solver that takes its time.
PLUGIN = '''
import os
import time

import numpy as np

from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import IncompleteError
from bench_mtl.model.protocols import Capability, Problem


class Losing(Problem):
    """min 1/2 sum_jk s_j (W_jk - A_jk)^2, s_j from 1 to 1000; its gradient is lost at a call."""

    name = "losing"
    offers = frozenset({Capability.SMOOTH, Capability.PROX})
    point_shape = dual_shape = (6, 2)
    dimensions = {"n": 1, "d": 6, "m": 2}

    def __init__(self, data, *, bound=0.5):
        self.bound, self.calls = bound, 0
        self.target = frozen(np.random.default_rng(1).standard_normal((6, 2)))
        self.weights = frozen(np.geomspace(1.0, 1000.0, 6)[:, None])

    @classmethod
    def examples(cls, rng):
        yield cls(None)

    def objective(self, point):
        return 1.0 + float(0.5 * np.sum(self.weights * (point - self.target) ** 2))

    def repair(self, point):
        if os.environ.get("LOST_AT") == "start":
            raise IncompleteError("the cluster of the data is gone")
        return np.clip(point, -self.bound, self.bound)

    def infeasibility(self, point):
        return 0.0

    def dual_bound(self, point, dual):
        return 0.5

    def value_and_gradient(self, point):
        self.calls += 1
        if str(self.calls) == os.environ.get("LOST_AT"):
            raise IncompleteError("the cluster of the data is gone")
        time.sleep(float(os.environ.get("PAUSE", "0")))
        return self.objective(point), self.weights * (point - self.target)

    def smooth_value(self, point):
        return self.objective(point)

    def lipschitz(self):
        return 1000.0

    def prox(self, point, step_size):
        return self.repair(point)

    def prox_value(self, point):
        return 0.0
'''


@pytest.fixture
def losing(tmp_path: Path) -> list[str | Path]:
    """The arguments of a run on a problem that can be lost."""
    (tmp_path / "plugins" / "problems").mkdir(parents=True)
    (tmp_path / "plugins" / "problems" / "losing.py").write_text(PLUGIN)
    return ["solve", "losing", "accelerated_gradient", *DATA, "--plugins", tmp_path / "plugins", "--iterations", "120"]


def read(path: Path) -> Checkpoint:
    return read_checkpoint("it", path)


def require_same(ours: Checkpoint, undisturbed: Checkpoint) -> None:
    """Points, counts and states are those of the undisturbed run, bit for bit."""
    assert ours.iterate[2:4] == undisturbed.iterate[2:4]
    assert np.array_equal(ours.iterate.primal, undisturbed.iterate.primal)
    assert (ours.iterate.dual is None) == (undisturbed.iterate.dual is None)
    assert ours.iterate.dual is None or np.array_equal(ours.iterate.dual, undisturbed.iterate.dual)  # type: ignore[arg-type]
    states = entries_of(ours.iterate), entries_of(undisturbed.iterate)
    assert states[0] is not None
    assert states[1] is not None
    assert states[0].keys() == states[1].keys()
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])


def refused(result: Any) -> str:
    assert (result.code, result.out) == (2, [])
    assert len(result.err) == 1
    return str(result.err[0])


@pytest.mark.parametrize(
    ("problem", "solver", "options"),
    [
        ("l1inf_hinge", "smoothed_gradient", []),
        ("sparse_low_rank", "projected_gradient", ["gram=never"]),
        ("sparse_low_rank", "accelerated_gradient", ["gram=always", "restart=gradient"]),
        ("l12_hinge", "graph_admm", []),
    ],
)
def test_a_run_in_two_parts_is_the_run_in_one(command: Command, tmp_path: Path, problem: str, solver: str, options: list[str]) -> None:
    parameters = ["radius=8.0", "penalty=0.5"] if problem == "sparse_low_rank" else ["radius=8.0"]
    rest = [word for parameter in parameters for word in ("--param", parameter)] + [word for one in options for word in ("--option", one)]
    solve = ["solve", problem, solver, *DATA, *rest, "--target", "1e-15"]
    first, second, whole = (tmp_path / f"{name}.npz" for name in ("first", "second", "whole"))
    assert command(*solve, "--iterations", "40", "--checkpoint", first).code == 1
    assert command(*solve, "--iterations", "90", "--checkpoint", second, "--resume", first).code == 1
    assert command(*solve, "--iterations", "90", "--checkpoint", whole).code == 1
    assert 40 <= read(first).iterate.step < 50
    assert read(whole).iterate.step >= 90
    require_same(read(second), read(whole))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.npz", "second.npz", "whole.npz"]


def test_steps_go_on_and_what_was_proven_is_kept(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    first = command(*HINGE, "--iterations", "200", "--checkpoint", path)
    assert first.out[-1] == f"checkpoint of step 200 written, go on with: {given_again(path, HINGE, '200')}"
    proven = read(path).certificate
    assert proven is not None
    result = command(*HINGE, "--iterations", "210", "--resume", path, "--json")
    document = json.loads("\n".join(result.out))
    assert 200 < document["samples"][0]["iteration"] <= document["samples"][-1]["iteration"] == 210
    assert document["checkpoint"] is None
    assert document["relative_gap"] <= proven.relative_gap * (1.0 + 1e-9)
    shown = command(*HINGE, "--iterations", "210", "--resume", path)
    assert shown.out[0].startswith(f"goes on from step 200 and {read(path).iterate.work:g} passes over the data of {path}")
    assert not any(line.startswith("note: ") for line in shown.out)


@pytest.mark.parametrize("place", [37, 137])
@pytest.mark.parametrize("solve", [HINGE, SPLIT], ids=["hinge", "split"])
def test_the_answer_is_that_of_the_run_that_was_not_killed(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solve: list[str], place: int
) -> None:
    """It ends at the same step, with the same point and bounds. What a killed run leaves is the file that it has written last."""
    cut, solve, write = tmp_path / "cut.npz", [*solve[:-1], "1e-5" if solve == HINGE else "1e-9"], Keeper.write

    def leaving(keeper: Keeper) -> int | None:
        step = write(keeper)
        if step is not None and step >= place and not cut.exists():
            shutil.copy(keeper.path, cut)
        return step

    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "write", leaving)
        solved = command(*solve, "--checkpoint", tmp_path / "run.npz", "--checkpoint-every", "1e-9", "--save", tmp_path / "a.npz", "--json")
    assert read(cut).iterate.step < 2 * place
    again = command(*solve, "--resume", cut, "--save", tmp_path / "b.npz", "--json")
    answer, ours = (json.loads("\n".join(result.out)) for result in (solved, again))
    assert ours["samples"][-1]["iteration"] == answer["samples"][-1]["iteration"] > 2 * place
    assert [ours[name] for name in ("objective", "dual_bound")] == [answer[name] for name in ("objective", "dual_bound")]
    solutions = [np.load(tmp_path / f"{name}.npz")["solution"] for name in "ab"]
    assert np.array_equal(*solutions)


def given_again(path: Path, solve: list[str], iterations: str) -> str:
    return shlex.join(["bench-mtl", *solve, "--iterations", iterations, "--checkpoint", str(path), "--resume", str(path)])


def test_what_is_said_of_the_bounds_is_not_believed(command: Command, tmp_path: Path) -> None:
    path, false = tmp_path / "run.npz", tmp_path / "false.npz"
    command(*HINGE, "--iterations", "20", "--checkpoint", path)
    with np.load(path) as file:
        entries = {key: file[key] for key in file.files}
    zero = np.zeros_like(entries["primal"])
    claims = {"objective": 1.0, "dual_bound": 1.0, "relative_gap": 0.0, "proof_point": zero, "proof_dual": np.zeros_like(entries["dual"])}
    np.savez(false, **{**{key: value for key, value in entries.items() if key != "proof_bound_point"}, **claims})
    result = command(*HINGE, "--iterations", "20", "--resume", false, "--json")
    document = json.loads("\n".join(result.out))
    assert result.code == 1
    assert document["samples"][0]["iteration"] == 20
    assert document["relative_gap"] == pytest.approx(float(entries["relative_gap"]), rel=1e-9)
    assert document["relative_gap"] > 1e-6


def test_a_solver_without_states_goes_on_from_its_points(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    solve = ["solve", "sparse_low_rank", "admm", *DATA, "--param", "radius=8.0", "--param", "penalty=0.5", "--target", "1e-15"]
    command(*solve, "--iterations", "100", "--checkpoint", path)
    step = read(path).iterate.step
    result = command(*solve, "--iterations", str(step + 50), "--resume", path)
    assert "note: there is no state of the solver, so it goes on from its points alone" in result.out[1]
    shown = [line.split() for line in result.out if line.strip()[:1].isdigit()]
    assert step < int(shown[0][1]) <= 1.05 * step + 10  # an iterate after the start, which was certified where that was due


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("--param", "radius=8.0", "radius=2.0"), "is of a run with parameter radius = 8.0, not 2.0"),
        (
            ("", "smoothed_gradient", "projected_subgradient"),
            "is of a run with solver smoothed_gradient, not projected_subgradient",
        ),
        (("", "l1inf_hinge", "l12_hinge"), "is of a run with problem l1inf_hinge, not l12_hinge"),
        (("--data-option", "examples=40", "examples=41"), "is of a run with other data"),
        (("+", "--seed", "1"), "is of a run with other data"),
        (("+", "--option", "reduction=0.25"), "is of a run with option reduction = 0.5, not 0.25"),
    ],
)
def test_another_run_is_refused_in_a_line(command: Command, tmp_path: Path, change: tuple[str, str, str], words: str) -> None:
    path = tmp_path / "run.npz"
    command(*HINGE, "--iterations", "20", "--checkpoint", path)
    before = path.read_bytes()
    where, old, new = change
    other = [*HINGE, old, new] if where == "+" else [new if word == old else word for word in HINGE]
    assert words in refused(command(*other, "--iterations", "30", "--checkpoint", path, "--resume", path))
    assert path.read_bytes() == before


def test_a_file_of_data_that_has_changed_is_refused(command: Command, tmp_path: Path) -> None:
    data, path = tmp_path / "data.csv", tmp_path / "run.npz"
    rows = ["a,b,c,label", *(f"{i % 3},{i % 5},{(i * i) % 7},{i % 2}" for i in range(30))]
    data.write_text("\n".join(rows))
    solve = ["solve", "l1inf_hinge", "smoothed_gradient", "--data", str(data), "--data-option", "labels=1", "--param", "radius=8.0"]
    solve += ["--target", "1e-15"]
    assert command(*solve, "--iterations", "20", "--checkpoint", path).code == 1
    assert command(*solve, "--iterations", "30", "--resume", path).code == 1
    data.write_text("\n".join(rows[:-1]))
    assert "is of a run with other data" in refused(command(*solve, "--iterations", "30", "--resume", path))


def test_damaged_and_missing_files_are_refused_in_a_line(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    assert f"--resume: there is no file {path}" in refused(command(*HINGE, "--resume", path))
    command(*HINGE, "--iterations", "20", "--checkpoint", path)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") - 1] ^= 1  # the last byte before the directory: a number of the last array
    path.write_bytes(content)
    assert "is no checkpoint of bench-mtl solve, or it is damaged" in refused(command(*HINGE, "--resume", path))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["l1inf_hinge", "scs", "--checkpoint", "x.npz"], "--checkpoint and --resume are for solvers that iterate, and scs answers once"),
        (["l1inf_hinge", "scs", "--resume", "x.npz"], "--checkpoint and --resume are for solvers that iterate, and scs answers once"),
        (["l1inf_hinge", "auto", "pdhg", "--checkpoint", "x.npz"], "--checkpoint is for one solver"),
        (["l1inf_hinge", "auto", "pdhg", "--resume", "x.npz"], "--resume is for one solver"),
        (["l1inf_hinge", "pdhg", "--checkpoint-every", "5"], "--checkpoint-every needs --checkpoint"),
        (["l1inf_hinge", "pdhg", "--checkpoint", "x.npz", "--checkpoint-every", "0"], "--checkpoint-every must be finite and above 0"),
        (["l1inf_hinge", "pdhg", "--checkpoint", "no/folder/x.npz"], "--checkpoint: the checkpoint cannot be written to no/folder/x.npz"),
        (["l1inf_hinge", "pdhg", "--checkpoint", "."], "--checkpoint: . is not a file"),
    ],
)
def test_bad_usage_is_a_line_before_anything_is_done(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in refused(command("solve", *arguments, *DATA, "--param", "radius=8.0"))
    assert not list(tmp_path.iterdir())


def test_a_run_that_loses_its_cluster_goes_on_to_the_same_bits(
    command: Command, tmp_path: Path, losing: list[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, whole = tmp_path / "cut file.npz", tmp_path / "whole.npz"
    assert command(*losing, "--checkpoint", whole).code == 1
    monkeypatch.setenv("LOST_AT", "50")
    lost = command(*losing, "--checkpoint", cut)
    step = read(cut).iterate.step
    assert 40 < step < 50
    assert lost.code == 3
    again = shlex.join(["bench-mtl", *map(str, losing), "--checkpoint", str(cut), "--resume", str(cut)])
    assert lost.err == [f"bench-mtl: the cluster of the data is gone; checkpoint of step {step} written, go on with: {again}"]
    monkeypatch.delenv("LOST_AT")
    words = shlex.split(lost.err[0].partition("go on with: bench-mtl ")[2])
    assert command(*words).code == 1
    require_same(read(cut), read(whole))


def test_without_a_checkpoint_it_is_said_how_to_have_one(
    command: Command, losing: list[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOST_AT", "50")
    lost = command(*losing)
    assert lost.code == 3
    said = "nothing was kept: with --checkpoint FILE the run could go on from there"
    assert lost.err == [f"bench-mtl: the cluster of the data is gone; {said}"]


def test_a_run_that_is_lost_at_once_keeps_nothing(
    command: Command, tmp_path: Path, losing: list[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOST_AT", "start")
    lost = command(*losing, "--checkpoint", tmp_path / "run.npz")
    assert lost.code == 3
    assert lost.err == ["bench-mtl: the cluster of the data is gone; there was no iterate yet, so no checkpoint is written"]
    assert not list(tmp_path.glob("run*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_a_checkpoint_and_goes_on_to_the_same_bits(
    command: Command, tmp_path: Path, losing: list[str | Path], number: signal.Signals
) -> None:
    cut, whole = tmp_path / "cut.npz", tmp_path / "whole.npz"
    assert command(*losing, "--checkpoint", whole).code == 1
    words = [sys.executable, "-m", "bench_mtl", *map(str, losing), "--checkpoint", str(cut), "--checkpoint-every", "0.05"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PAUSE": "0.1"},
        preexec_fn=lambda: set_handler(signal.SIGINT, signal.default_int_handler),  # a shell's background ignores it
    ) as process:  # fmt: skip
        until = time.monotonic() + 60.0
        while not (cut.exists() and read(cut).iterate.step >= 3) and time.monotonic() < until:  # whole whenever it is read
            time.sleep(0.01)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert len(said.splitlines()) == 1
    step = read(cut).iterate.step
    assert said.startswith(f"bench-mtl: interrupted; checkpoint of step {step} written, go on with: bench-mtl solve losing ")
    assert 3 <= step < 120
    assert command(*shlex.split(said.partition("go on with: bench-mtl ")[2])).code == 1
    require_same(read(cut), read(whole))
    assert not list(tmp_path.glob("*.part"))


def test_a_checkpoint_that_cannot_be_written_on_the_way_ends_no_run(
    command: Command, tmp_path: Path, losing: list[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk is full for a while; what was written before stays whole."""
    path = tmp_path / "run.npz"
    assert command(*losing, "--iterations", "2", "--checkpoint", path).code == 1
    before = path.read_bytes()
    writes = 0

    def full(file: int) -> None:
        nonlocal writes
        writes += 1
        if writes == 1:
            assert path.read_bytes() == before
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = command(*losing, "--checkpoint", path, "--resume", path, "--checkpoint-every", "1e-9")
    assert writes > 100
    assert len(result.err) == 1
    assert "--checkpoint: the checkpoint cannot be written to" in result.err[0]
    assert result.err[0].endswith("; the run goes on")
    assert result.code == 1
    assert read(path).iterate.step == 120


def test_a_checkpoint_that_cannot_be_written_at_the_end_is_an_error(
    command: Command, tmp_path: Path, losing: list[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = command(*losing, "--checkpoint", tmp_path / "run.npz")
    assert result.code == 2
    assert "No space left on device" in result.err[-1]
    assert not list(tmp_path.glob("run*"))
    monkeypatch.setenv("LOST_AT", "50")
    result = command(*losing, "--checkpoint", tmp_path / "run.npz")
    assert result.code == 3
    assert "the cluster of the data is gone; no checkpoint is written: " in result.err[-1]


SOLVER = '''
from dataclasses import dataclass

import numpy as np

from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import IterativeSolver


@dataclass(frozen=True)
class Odd(IterativeSolver):
    """Yields the zero point with nonsense for a state, and ends in NaN where it is to."""

    nan: bool = False

    name = "odd"
    requires = frozenset()

    def steps(self, problem, start=None):
        for step in range(3):
            yield Iterate(problem.zero(), None, step, float(step), state={"x": object()})
        if self.nan:
            yield Iterate(np.full(problem.point_shape, np.nan), None, 3, 3.0)
'''


def test_nonsense_for_a_state_is_said_and_the_points_are_kept(command: Command, tmp_path: Path) -> None:
    (tmp_path / "plugins" / "solvers").mkdir(parents=True)
    (tmp_path / "plugins" / "solvers" / "odd.py").write_text(SOLVER)
    path = tmp_path / "run.npz"
    solve = ["solve", "l1inf_hinge", "odd", *DATA, "--param", "radius=8.0", "--plugins", tmp_path / "plugins"]
    result = command(*solve, "--checkpoint", path)
    assert result.code == 1
    assert result.err == [
        "bench-mtl: --checkpoint: the state of the solver cannot be kept: 'x' must be a number or an array of float64 or int64, "
        "not object; a run goes on from the points of this checkpoint alone"
    ]
    assert read(path).iterate[2:5] == (2, 2.0, "")
    other = tmp_path / "other.npz"
    result = command(*solve, "--checkpoint", other, "--option", "nan=true")
    assert result.code == 1
    assert any("primal point has NaN at index" in line for line in result.out)
    assert read(other).iterate[2:5] == (2, 2.0, "")  # the last that was a point


def test_a_checkpoint_is_not_written_over_by_another_run(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    command(*HINGE, "--iterations", "20", "--checkpoint", path)
    before = path.read_bytes()
    said = refused(command(*HINGE, "--iterations", "30", "--checkpoint", path))
    assert f"{path} is there already: go on from it with --resume {path}, or name another file" in said
    assert path.read_bytes() == before


def test_a_met_target_needs_no_checkpoint(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    solve = [word if word != "1e-15" else "1e-3" for word in HINGE]
    assert command(*solve, "--checkpoint", path).code == 0
    assert not list(tmp_path.iterdir())


def test_iterates_of_older_solvers_have_no_state() -> None:
    assert Iterate(np.zeros(2)).state is None
    assert entries_of(Iterate(np.zeros(2), None, 1, 2.0, "note")) is None
