"""`bench-mtl solve --checkpoint` and `--resume`: a run that is cut off goes on where it was, and nothing else goes on from it."""

import errno
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from commands import ROOT, Command, document, refused, table_of_flowers
from plugin_text import iterative

from bench_mtl.cli.solve import Keeper
from bench_mtl.engine.checkpoint import Checkpoint, read_checkpoint
from bench_mtl.model.solver_state import entries_of

#: The real one, which `command` takes away from commands in this process.
set_handler = signal.signal

DATA = ["--data", "synthetic_l1inf", "--data-option", "tasks=3", "--data-option", "features=8", "--data-option", "examples=40"]
HINGE = ["solve", "l1inf_hinge", "smoothed_gradient", *DATA, "--param", "radius=8.0", "--target", "1e-15"]
SPLIT = ["solve", "sparse_low_rank", "accelerated_gradient", *DATA, "--param", "radius=8.0", "--param", "penalty=0.5"]
SPLIT += ["--option", "gram=never", "--target", "1e-15"]
LIMITED = [*HINGE, "--iterations", "20", "--checkpoint", "run.npz"]

#: The box of the plug-ins, which is lost at a gradient of this number, or takes its time; its bound is one that nothing meets.
PLUGIN = """
import os
import time
from bench_mtl.core.errors import IncompleteError
from .boxes import Box

class Losing(Box):
    name = "losing"
    calls = 0

    def repair(self, point):
        if os.environ.get("LOST_AT") == "start":
            raise IncompleteError("the cluster of the data is gone")
        return super().repair(point)

    def dual_bound(self, point, dual):
        return 0.5 * super().dual_bound(point, dual)

    def value_and_gradient(self, point):
        self.calls += 1
        if str(self.calls) == os.environ.get("LOST_AT"):
            raise IncompleteError("the cluster of the data is gone")
        time.sleep(float(os.environ.get("PAUSE", "0")))
        return super().value_and_gradient(point)
"""


@pytest.fixture
def losing(here: Path) -> list[str]:
    """The arguments of a run on a problem that can be lost."""
    (here / "plugins" / "problems").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "plugins" / "problems" / "boxes.py", here / "plugins" / "problems")
    (here / "plugins" / "problems" / "losing.py").write_text(PLUGIN)
    return ["solve", "losing", "accelerated_gradient", *DATA, "--plugins", "plugins", "--iterations", "120"]


def read(path: str) -> Checkpoint:
    return read_checkpoint("it", Path(path))


def require_same(ours: Checkpoint, undisturbed: Checkpoint) -> None:
    """Points, counts and states are those of the undisturbed run, bit for bit."""
    assert ours.iterate[2:4] == undisturbed.iterate[2:4]
    np.testing.assert_equal((ours.iterate.primal, ours.iterate.dual), (undisturbed.iterate.primal, undisturbed.iterate.dual))
    states = entries_of(ours.iterate), entries_of(undisturbed.iterate)
    assert states[0]
    np.testing.assert_equal(*states)


def test_steps_go_on_and_what_was_proven_is_kept(command: Command) -> None:
    first = command(*LIMITED)
    again = [*HINGE, "--checkpoint", "run.npz", "--resume", "run.npz"]  # steps count on, so that the limit is reached
    assert first.out[-1] == f"checkpoint of step 20 written, go on with: {shlex.join(['bench-mtl', *again])}"
    proven = read("run.npz").certificate
    more = [*HINGE, "--iterations", "30", "--resume", "run.npz"]
    run = document(command(*more, "--json"))
    assert 20 < run["samples"][0]["iteration"] <= run["samples"][-1]["iteration"] == 30
    assert run["checkpoint"] is None
    assert run["relative_gap"] <= proven.relative_gap * (1.0 + 1e-9)
    shown = command(*more)
    assert shown.out[0].startswith(f"goes on from step 20 and {read('run.npz').iterate.work:g} passes over the data of run.npz")
    assert not any(line.startswith("note: ") for line in shown.out)


@pytest.mark.parametrize("place", [37, 137])
@pytest.mark.parametrize("solve", [HINGE, SPLIT], ids=["hinge", "split"])
def test_the_answer_is_that_of_the_run_that_was_not_killed(
    command: Command, monkeypatch: pytest.MonkeyPatch, solve: list[str], place: int
) -> None:
    """It ends at the same step, with the same point and bounds. What a killed run leaves is the file that it has written last."""
    solve, write = [*solve[:-1], "1e-5" if solve == HINGE else "1e-9"], Keeper.write

    def leaving(keeper: Keeper) -> int | None:
        step = write(keeper)
        if step is not None and step >= place and not Path("cut.npz").exists():
            shutil.copy(keeper.path, "cut.npz")
        return step

    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "write", leaving)
        answer = document(command(*solve, "--checkpoint", "run.npz", "--checkpoint-every", "1e-9", "--save", "a.npz", "--json"))
    assert read("cut.npz").iterate.step < 2 * place
    ours = document(command(*solve, "--resume", "cut.npz", "--save", "b.npz", "--json"))
    assert ours["samples"][-1]["iteration"] == answer["samples"][-1]["iteration"] > 2 * place
    assert [ours[name] for name in ("objective", "dual_bound")] == [answer[name] for name in ("objective", "dual_bound")]
    assert np.array_equal(np.load("a.npz")["solution"], np.load("b.npz")["solution"])


def test_what_is_said_of_the_bounds_is_not_believed(command: Command) -> None:
    command(*LIMITED)
    with np.load("run.npz") as file:
        entries = {key: file[key] for key in file.files if key != "proof_bound_point"}
    zeros = {"proof_point": np.zeros_like(entries["primal"]), "proof_dual": np.zeros_like(entries["dual"])}
    np.savez("false.npz", **{**entries, **zeros, "objective": 1.0, "dual_bound": 1.0, "relative_gap": 0.0})
    result = command(*HINGE, "--iterations", "20", "--resume", "false.npz", "--json")
    assert (result.code, document(result)["samples"][0]["iteration"]) == (1, 20)
    assert document(result)["relative_gap"] == pytest.approx(float(entries["relative_gap"]), rel=1e-9)


def test_a_solver_without_states_goes_on_from_its_points(command: Command) -> None:
    solve = ["solve", "sparse_low_rank", "admm", *SPLIT[3:-4], "--target", "1e-15"]
    command(*solve, "--iterations", "100", "--checkpoint", "run.npz")
    step = read("run.npz").iterate.step
    result = command(*solve, "--iterations", str(step + 50), "--resume", "run.npz")
    assert "note: there is no state of the solver, so it goes on from its points alone" in result.out[1]
    shown = [line.split() for line in result.out if line.strip()[:1].isdigit()]
    assert step < int(shown[0][1]) <= 1.05 * step + 10  # an iterate after the start, which was certified where that was due


def test_another_run_is_refused_and_writes_over_nothing(command: Command) -> None:
    command(*LIMITED)
    before = Path("run.npz").read_bytes()
    for old, new, words in (
        ("radius=8.0", "radius=2.0", "is of a run with parameter radius = 8.0, not 2.0"),
        ("smoothed_gradient", "projected_subgradient", "is of a run with solver smoothed_gradient, not projected_subgradient"),
        ("l1inf_hinge", "l12_hinge", "is of a run with problem l1inf_hinge, not l12_hinge"),
        ("examples=40", "examples=41", "is of a run with other data"),
        ("--seed", "1", "is of a run with other data"),
        ("--option", "reduction=0.25", "is of a run with option reduction = 0.5, not 0.25"),
    ):
        other = [new if word == old else word for word in LIMITED] + ([] if old in LIMITED and old[:2] != "--" else [old, new])
        assert words in refused(command(*other, "--resume", "run.npz"))
        said = refused(command(*other))
        assert "run.npz is there already: go on from it with --resume run.npz, or name another file" in said
        assert Path("run.npz").read_bytes() == before


def test_a_file_of_data_that_has_changed_and_a_damaged_checkpoint_are_refused(command: Command) -> None:
    table_of_flowers(Path("own.csv"))
    solve = [*HINGE[:3], "--data", "own.csv", "--data-option", "labels=2", *HINGE[-4:]]
    assert command(*solve, "--iterations", "20", "--checkpoint", "run.npz").code == 1
    assert command(*solve, "--iterations", "30", "--resume", "run.npz").code == 1
    Path("own.csv").write_text("".join(Path("own.csv").read_text().splitlines(keepends=True)[:-1]))
    assert "is of a run with other data" in refused(command(*solve, "--resume", "run.npz"))
    content = bytearray(Path("run.npz").read_bytes())
    content[content.index(b"PK\x01\x02") - 1] ^= 1  # the last byte before the directory: a number of the last array
    Path("run.npz").write_bytes(content)
    assert "is no checkpoint of bench-mtl solve, or it is damaged" in refused(command(*solve, "--resume", "run.npz"))


def test_a_run_that_loses_its_cluster_goes_on_to_the_same_bits(
    command: Command, here: Path, losing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command(*losing, "--checkpoint", "whole.npz").code == 1
    monkeypatch.setenv("LOST_AT", "start")
    lost = command(*losing, "--checkpoint", "run.npz")
    assert (lost.code, lost.err[0].partition("; ")[2]) == (3, "there was no iterate yet, so no checkpoint is written")
    assert not list(here.glob("run*"))
    monkeypatch.setenv("LOST_AT", "50")
    lost = command(*losing)
    assert (lost.code, lost.err[0].partition("; ")[2]) == (3, "nothing was saved: with --checkpoint FILE the run could go on from there")
    lost = command(*losing, "--checkpoint", "cut file.npz")
    step = read("cut file.npz").iterate.step
    assert 40 < step < 50
    assert lost.code == 3
    again = shlex.join(["bench-mtl", *losing, "--checkpoint", "cut file.npz", "--resume", "cut file.npz"])
    assert lost.err == [f"bench-mtl: the cluster of the data is gone; checkpoint of step {step} written, go on with: {again}"]
    monkeypatch.delenv("LOST_AT")
    assert command(*shlex.split(again)[1:]).code == 1
    require_same(read("cut file.npz"), read("whole.npz"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_a_checkpoint_and_goes_on_to_the_same_bits(
    command: Command, here: Path, losing: list[str], number: signal.Signals
) -> None:
    assert command(*losing, "--checkpoint", "whole.npz").code == 1
    words = [sys.executable, "-m", "bench_mtl", *losing, "--checkpoint", "cut.npz", "--checkpoint-every", "0.05"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PAUSE": "0.1"},
        preexec_fn=lambda: set_handler(signal.SIGINT, signal.default_int_handler),  # a shell's background ignores it
    ) as process:  # fmt: skip
        until = time.monotonic() + 60.0
        while not (Path("cut.npz").exists() and read("cut.npz").iterate.step >= 3) and time.monotonic() < until:
            time.sleep(0.01)  # the file is whole whenever it is read
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert len(said.splitlines()) == 1
    step = read("cut.npz").iterate.step
    assert said.startswith(f"bench-mtl: interrupted; checkpoint of step {step} written, go on with: bench-mtl solve losing ")
    assert 3 <= step < 120
    assert command(*shlex.split(said.partition("go on with: bench-mtl ")[2])).code == 1
    require_same(read("cut.npz"), read("whole.npz"))
    assert not list(here.glob("*.part"))


def test_a_checkpoint_that_cannot_be_written_ends_no_run_on_the_way_and_is_an_error_at_the_end(
    command: Command, here: Path, losing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk is full for a while; what was written before stays whole."""
    assert command(*losing, "--iterations", "2", "--checkpoint", "run.npz").code == 1
    before, writes = Path("run.npz").read_bytes(), 0

    def full(file: int) -> None:
        nonlocal writes
        writes += 1
        if writes == 1 or before == b"":
            assert before in (b"", Path("run.npz").read_bytes())
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = command(*losing, "--checkpoint", "run.npz", "--resume", "run.npz", "--checkpoint-every", "1e-9")
    assert writes > 100
    assert (result.code, len(result.err), read("run.npz").iterate.step) == (1, 1, 120)
    assert "--checkpoint: the checkpoint cannot be written to" in result.err[0]
    assert result.err[0].endswith("; the run goes on")
    before = b""
    result = command(*losing, "--checkpoint", "other.npz")
    assert result.code == 3
    assert "No space left on device; what was there before remains" in result.err[-1]
    monkeypatch.setenv("LOST_AT", "50")
    result = command(*losing, "--checkpoint", "other.npz")
    assert result.code == 3
    assert "the cluster of the data is gone; no checkpoint is written: " in result.err[-1]
    assert not list(here.glob("other*"))


#: Yields the zero point with nonsense for a state, and ends in NaN where it is to.
ODD = """
for step in range(3):
    yield Iterate(problem.zero(), None, step, float(step), state={"x": object()})
if self.nan:
    yield Iterate(np.full(problem.point_shape, np.nan), None, 3, 3.0)
"""


def test_nonsense_for_a_state_is_said_and_the_points_are_kept(command: Command, here: Path) -> None:
    (here / "plugins" / "solvers").mkdir(parents=True)
    (here / "plugins" / "solvers" / "odd.py").write_text(iterative("odd", ODD, more="nan: bool = False"))
    solve = ["solve", "l1inf_hinge", "odd", *DATA, "--param", "radius=8.0", "--plugins", "plugins"]
    result = command(*solve, "--checkpoint", "run.npz")
    assert (result.code, len(result.err)) == (1, 1)
    assert "'x' must be a number or an array of float64 or int64, not object; a run goes on from the points" in result.err[0]
    assert read("run.npz").iterate[2:5] == (2, 2.0, "")
    result = command(*solve, "--checkpoint", "other.npz", "--option", "nan=true")
    assert result.code == 1
    assert any("primal point has NaN at index" in line for line in result.out)
    assert read("other.npz").iterate[2:5] == (2, 2.0, "")  # the last that was a point


def test_a_met_target_needs_no_checkpoint(command: Command, here: Path) -> None:
    assert command(*HINGE[:-1], "1e-3", "--checkpoint", "run.npz").code == 0
    assert not list(here.iterdir())
