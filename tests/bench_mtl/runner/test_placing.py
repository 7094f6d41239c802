"""Data are read or made once for all processes of an executor, or of a Dask worker; nobody can change them, and rows are the same."""

from __future__ import annotations

import gc
import io
import mmap
import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from opened import opened
from runs import PLUGINS, cases_of, comparable, go_on, solver, suite_of

from bench_mtl.core.types import Status
from bench_mtl.data.catalogue import load
from bench_mtl.data.readers.shards import write_shards
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Instance
from bench_mtl.model.task_data import TaskData
from bench_mtl.runner import Executor, LocalExecutor, Setting, executors, placing, process
from bench_mtl.runner.executors import Slot
from bench_mtl.runner.inprocess import CaseRunner
from bench_mtl.runner.memory import resident_mib
from bench_mtl.runner.placing import Placed, Shelf, key_of

pytestmark = pytest.mark.skipif(not placing.is_possible(), reason="memory files cannot be sealed here")

two_processors = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor only")

FILED = """
[[problems]]
name = "box"
label = "filed"
data = { name = "filed" }
grid = { bound = [0.5, 0.25] }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data directory with one set."""
    dice = np.random.default_rng(0)
    np.savez(tmp_path / "filed.npz", X=dice.normal(size=(8, 4)), Y=np.sign(dice.normal(size=(8, 2))))
    return tmp_path


@pytest.mark.parametrize("place", ["one slot", pytest.param("two slots", marks=two_processors), "cluster"])
def test_a_process_reads_data_once_for_all_its_cases(folder: Path, place: str, request: pytest.FixtureRequest) -> None:
    """Whoever runs them: solvers of the package and of plug-ins, those that die, and certifiers. Each Dask worker is such a process."""
    setting = Setting(1, PLUGINS, folder)
    solvers = ('name = "projected_gradient"', solver("reports", "number", 1, 2), solver("faulty_process", "fault", "aborts"))
    cases = cases_of(suite_of(*solvers, limits="seconds = 20.0, iterations = 20", problems=FILED), data_dir=folder)
    assert len(cases) == 8
    with opened(folder / "filed.npz") as openings:
        with LocalExecutor(setting) as executor:
            assert executor.submit(cases[0]).result().record.status is Status.VERIFIED
        for_one = openings()
        assert for_one >= 2  # to look whether it is the right one, and to read it
        with executor_at(place, setting, request) as executor:
            assert executor.find_mistake(cases) is None
            statuses = [each.result().record.status for each in [executor.submit(case) for case in cases]]
        assert openings() - for_one <= (2 if place == "cluster" else 1) * for_one
    assert sorted(statuses) == sorted(2 * (Status.VERIFIED, Status.INACCURATE, Status.INACCURATE, Status.CRASHED))


def executor_at(place: str, setting: Setting, request: pytest.FixtureRequest) -> Executor:
    if place != "cluster":
        return LocalExecutor(setting, 2 if place == "two slots" else 1)
    pytest.importorskip("distributed", reason="Dask is not installed")
    from bench_mtl.runner.cluster import ClusterExecutor

    return ClusterExecutor.at(setting, request.getfixturevalue("cluster").address)


SETS: dict[str, dict[str, Any]] = {
    "tasks with a cube": {"name": "synthetic_l1inf", "tasks": 3, "features": 7, "examples": 6},
    "classes with truth": {"name": "synthetic_multiclass", "classes": 3, "features": 12, "examples": 30},
    "real targets": {"name": "synthetic_sparse_low_rank", "tasks": 12, "features": 40, "examples": 9},
    "a sparse stream": {"name": "synthetic_stream", "examples": 20, "features": 500},
    "held out": {"name": "digits", "examples": 60, "held_out": 30, "preprocess": ["unit_rows"]},
    "sparse": {"name": "sparse"},
    "prices": {"file": "prices.csv"},
}


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, dice = tmp_path_factory.mktemp("sets"), np.random.default_rng(1)
    X = sp.random_array((20, 15), density=0.3, rng=dice, format="csr")
    parts = {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": np.array(X.shape)}
    np.savez(folder / "sparse.npz", **parts, Y=np.sign(dice.normal(size=(20, 2))))
    prices = np.exp(np.cumsum(dice.normal(scale=0.01, size=(30, 3)), axis=0))
    (folder / "prices.csv").write_text("\n".join(["a,b,c", *(",".join(map(str, row)) for row in prices)]) + "\n")
    return folder


def instance_of(data: dict[str, Any], folder: Path, problem: str = "box") -> Instance:
    instance = Instance(problem, "placed", data, {}, 0)
    return replace(instance, fingerprint=instance.fingerprint_here(folder))


def written(instance: Instance, folder: Path) -> int | None:
    """The descriptor of a file with the data of an instance, None where they could not be placed."""
    descriptor = os.memfd_create("test", os.MFD_CLOEXEC)
    if placing.write(instance, load_registry(), folder, descriptor):
        return descriptor
    os.close(descriptor)
    return None


class _Pickler(pickle.Pickler):
    """Notes all arrays of what it pickles."""

    arrays: list[Any]

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, np.ndarray):
            strides = [stride for stride, length in zip(thing.strides, thing.shape, strict=True) if length > 1]
            self.arrays.append((thing.dtype, thing.shape, strides, thing.tobytes()))
        return NotImplemented


def contents(thing: Any) -> tuple[list[Any], bytes]:
    """Every array in turn, and all that is no array, whoever may write to it."""
    stream = io.BytesIO()
    pickler = _Pickler(stream, protocol=5, buffer_callback=lambda buffer: None)
    pickler.arrays = []
    pickler.dump(thing)
    return pickler.arrays, stream.getvalue().replace(pickle.READONLY_BUFFER, b"")


@pytest.mark.parametrize("name", SETS)
def test_data_that_are_placed_are_those_that_are_read(sets: Path, name: str) -> None:
    problem = "portfolio" if name == "prices" else "box"
    expected = load(SETS[name], data_dir=sets, seed=0)
    descriptor = written(instance_of(SETS[name], sets, problem), sets)
    assert descriptor is not None
    found, _ = placing.read(descriptor)
    os.close(descriptor)
    assert contents(found) == contents(expected)
    assert (found.name, found.notes, found.n_tasks, repr(found)) == (expected.name, expected.notes, expected.n_tasks, repr(expected))


def test_a_problem_on_data_that_are_placed_is_built_without_reading(sets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instance_of(SETS["sparse"], sets)
    registry = load_registry(PLUGINS)
    expected = CaseRunner(registry, sets).problem(instance)
    descriptor = written(instance, sets)
    assert descriptor is not None
    monkeypatch.setattr("bench_mtl.engine.suite.load", None)
    runner = CaseRunner(registry, Path("/nowhere"))
    runner.placed = descriptor
    found = runner.problem(instance)
    os.close(descriptor)
    assert found.state == expected.state
    assert found.is_untouched()


@pytest.mark.parametrize("data", ['name = "synthetic_l1inf", tasks = 2, features = 5, examples = 6', 'name = "sparse"'])
def test_rows_are_those_of_processes_that_read_the_data_themselves(
    sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    problems = f'[[problems]]\nname = "l1inf_hinge"\nlabel = "hinge"\ndata = {{ {data} }}\nparameters = {{ radius = 0.5 }}\n'
    suite = suite_of(
        'name = "pdhg"', 'name = "projected_gradient"', 'name = "projected_subgradient"', 'name = "silent"',
        limits="seconds = 60.0, iterations = 40", problems=problems,
    )  # fmt: skip
    setting = Setting(1, PLUGINS, sets)
    go_on(tmp_path / "shared", suite, LocalExecutor(setting), data_dir=sets)
    monkeypatch.setattr(placing, "is_possible", lambda: False)
    go_on(tmp_path / "own", suite, LocalExecutor(setting), data_dir=sets)
    runs, samples = comparable(tmp_path / "shared")
    assert len(samples) > 10
    assert comparable(tmp_path / "own") == (runs, samples)


def place(shelf: Shelf, name: str, size: int = 100, made: list[str] | None = None) -> Placed | None:
    """What a shelf has of this name, which is made of zeros if need be."""

    def make(descriptor: int) -> bool:
        (made if made is not None else []).append(name)
        return os.write(descriptor, bytes(size)) == size

    return shelf.placed(name, make)


def test_nobody_can_change_what_is_placed() -> None:
    placed = place(Shelf(), "zeros", mmap.PAGESIZE)
    assert placed is not None
    again = os.open(f"/proc/self/fd/{placed.descriptor}", os.O_RDWR)
    try:
        for descriptor in (placed.descriptor, again):
            for change in (
                lambda: os.pwrite(descriptor, b"1", 0),  # noqa: B023 - called at once
                lambda: os.ftruncate(descriptor, 0),  # noqa: B023
                lambda: os.ftruncate(descriptor, 2 * mmap.PAGESIZE),  # noqa: B023
                lambda: mmap.mmap(descriptor, mmap.PAGESIZE, flags=mmap.MAP_SHARED),  # noqa: B023
            ):
                with pytest.raises(PermissionError):
                    change()
        own = mmap.mmap(again, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE)
        own[0] = 1  # of this process alone
        assert os.pread(placed.descriptor, 1, 0) == b"\0"
        own.close()
    finally:
        os.close(again)


def test_arrays_that_are_placed_cannot_be_made_writable(sets: Path) -> None:
    descriptor = written(instance_of(SETS["held out"], sets), sets)
    assert descriptor is not None
    data, _ = placing.read(descriptor)
    os.close(descriptor)
    assert data.held_out is not None
    for array in (data.targets, data.design.block(0), data.held_out.design.block(0)):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_all_of_a_file_can_be_mapped_at_once(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As in a fork, whose solver's clock should not run while it maps page by page."""
    large = TaskData.shared(np.ones((2**12, 2**10)), np.ones(2**12))  # 32 MiB
    monkeypatch.setattr(placing, "load", lambda *_, **__: large)
    descriptor = written(instance_of({"name": "filed"}, folder), folder)
    assert descriptor is not None
    data, mapped = placing.read(descriptor)
    os.close(descriptor)
    before = resident_mib(os.getpid())
    placing.populate(mapped)
    grown = resident_mib(os.getpid()) - before
    whole = mapped()
    assert whole is not None
    if grown < 31.0:
        with pytest.raises(OSError, match="Invalid argument"):  # not before Linux 5.14
            whole.madvise(placing._POPULATE_READ)
    del data, whole
    gc.collect()
    assert mapped() is None
    placing.populate(mapped)


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_a_shelf_keeps_the_last_sets_within_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "KEPT_BYTES", 250)
    monkeypatch.setattr(placing, "KEPT_FILES", 3)
    shelf, made = Shelf(), list[str]()

    def use(name: str, size: int = 100) -> int:
        found = place(shelf, name, size, made)
        assert found is not None
        return found.descriptor

    use("a")
    use("b")
    use("a")  # so that b is the one used longest ago
    use("c")
    use("a")
    use("c")
    assert made == ["a", "b", "c"]
    use("b")
    assert made == ["a", "b", "c", "b"]
    held = place(shelf, "large", 1000, made)
    assert held is not None
    assert is_open(held.descriptor)
    use("large")  # held by somebody, it counts for nobody else
    assert made[4:] == ["large"]
    descriptor = held.descriptor
    del held
    gc.collect()
    assert not is_open(descriptor)
    for name in "defg":
        use(name, 1)
    use("d", 1)
    assert made[5:] == ["d", "e", "f", "g", "d"]


def test_what_cannot_be_made_is_not_tried_again_but_what_was_kept_from_it_is() -> None:
    shelf, tried = Shelf(), list[str]()

    def make(answer: bool | None) -> Callable[[int], bool | None]:
        def made(descriptor: int) -> bool | None:
            tried.append(str(answer))
            return answer

        return made

    def raises(descriptor: int) -> bool:
        tried.append("raises")
        raise OSError

    assert shelf.placed("kept from it", make(None)) is None
    assert shelf.placed("kept from it", raises) is None
    assert shelf.placed("kept from it", make(True)) is not None
    assert shelf.placed("impossible", make(False)) is None
    assert shelf.placed("impossible", make(True)) is None
    assert tried == ["None", "raises", "True", "False"]


def test_what_cases_refuse_or_map_themselves_is_not_placed(sets: Path, folder: Path) -> None:
    filed = instance_of({"name": "filed"}, folder)
    descriptor = written(filed, folder)
    assert descriptor is not None
    os.close(descriptor)
    assert written(replace(filed, fingerprint="0" * 16), folder) is None
    assert written(filed, sets) is None  # it is not there
    write_shards(folder / "sharded", [(np.eye(3), np.ones((3, 2)))])
    assert written(instance_of({"file": "sharded/shards.json"}, folder), folder) is None
    assert written(instance_of(SETS["prices"], sets, "unknown"), sets) is None  # whether it is a table of prices only a plug-in says


def test_only_data_of_the_catalogue_have_a_key(folder: Path) -> None:
    class Other(Instance):
        """As those of problems that are in memory."""

    filed = instance_of({"name": "filed"}, folder)
    key = key_of(filed, folder, 1)
    assert key is not None
    assert key == key_of(replace(filed, problem="laborious", parameters={"mib": 1}, label="other"), folder, 1)
    others = [replace(filed, fingerprint="0" * 16), replace(filed, seed=1), replace(filed, data={"name": "filed", "examples": 3})]
    assert len({key, *(key_of(other, folder, 1) for other in others), key_of(filed, folder, 2)}) == 5
    assert key_of(replace(filed, fingerprint=""), folder, 1) is None
    assert key_of(Other("box", "other", {"name": "filed"}, {}, None, fingerprint="0"), folder, 1) is None
    table = instance_of({"file": "filed.npz"}, folder)
    assert key_of(table, folder, 1) == key_of(replace(table, problem="portfolio"), folder, 1)
    table = replace(table, data={"file": "prices.csv"})
    assert key_of(table, folder, 1) != key_of(replace(table, problem="portfolio"), folder, 1)


def test_an_array_in_no_order_of_its_own_is_not_placed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    scattered = replace(TaskData.shared(np.eye(4), np.eye(4)), orientation=np.ones((8, 8))[::2, ::2])
    monkeypatch.setattr(placing, "load", lambda *_, **__: scattered)
    assert written(instance_of({"name": "filed"}, folder), folder) is None


def test_data_beyond_the_limit_of_memory_end_the_case_as_before(tmp_path: Path) -> None:
    data = '{ name = "synthetic_l1inf", tasks = 60, features = 1000, examples = 1000 }'  # 460 MiB
    problems = f'[[problems]]\nname = "box"\nlabel = "large"\ndata = {data}\n'
    suite = suite_of('name = "silent"', problems=problems, limits="seconds = 60.0, memory_gib = 0.3")
    (case,) = cases_of(suite)
    with LocalExecutor(Setting(1, PLUGINS)) as executor:
        record = executor.submit(case).result().record
    assert (record.status, record.reason.split(",")[0]) == (Status.MEMORY, "memory limit of 0.3 GiB")


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_process_that_hangs_or_dies_as_it_places_data_keeps_nobody(monkeypatch: pytest.MonkeyPatch, how: signal.Signals) -> None:
    (case,) = cases_of(suite_of('name = "projected_gradient"'))
    place, asked = process.Worker.place, []

    def place_and_fail(worker: process.Worker, *arguments: Any) -> bool:
        assert worker._await_ready() is None
        os.kill(worker._process.pid, how)
        asked.append(worker)
        return place(worker, *arguments)

    monkeypatch.setattr(process.Worker, "place", place_and_fail)
    with LocalExecutor(Setting(1, PLUGINS)) as executor:
        running = executor.submit(case)
        if how == signal.SIGSTOP:
            while not asked:
                time.sleep(0.01)
            executor.stop()
            running.result(timeout=60.0)  # whose outcome means nothing
        else:
            assert running.result(timeout=60.0).record.status is Status.VERIFIED
    assert len(asked) == 1


@pytest.fixture
def slot(folder: Path) -> Iterator[Slot]:
    with closing(Slot(Setting(1, PLUGINS, folder), Shelf())) as slot:
        yield slot


def test_data_that_change_after_they_were_placed_stay_those_of_the_plan(folder: Path, slot: Slot) -> None:
    first, second = cases_of(suite_of(solver("reports", "number", 1, 2), problems=FILED.replace(", 0.25", "")), data_dir=folder)
    assert slot.run(first).record.status is Status.INACCURATE
    (folder / "filed.npz").write_bytes(b"something else")
    slot.close()  # so that other processes build the problem of the next
    again = slot.run(second)
    assert again.record.status is Status.INACCURATE, again.record.reason
    assert again.baseline == slot.run(first).baseline


def test_the_process_that_makes_small_sets_is_kept_and_that_of_a_large_one_is_not(monkeypatch: pytest.MonkeyPatch, slot: Slot) -> None:
    small, other, large = cases_of(suite_of(solver("reports", "number", 1), top="seeds = [0, 1, 2]"))
    placers = []
    for case in (small, other):
        assert slot.run(case).record.status is Status.INACCURATE
        placers.append(slot._placer)
    assert placers[0] is placers[1] is not None
    assert placers[0].is_alive
    monkeypatch.setattr(executors, "_SMALL_BYTES", 0)
    assert slot.run(large).record.status is Status.INACCURATE
    assert slot._placer is None
    assert not placers[0].is_alive
