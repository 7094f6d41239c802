"""Checkpoints: what a file keeps comes back to the bit, what is not whole or not plain is refused, and runs are told apart."""

import dataclasses
import json
import math
import re
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Certificate, Iterate, Proof
from bench_mtl.data import synthetic_l1inf
from bench_mtl.engine.checkpoint import Checkpoint, Origin, read_checkpoint, with_plain_state, write_checkpoint
from bench_mtl.model.solver_state import MAKER, entries_of
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient

ORIGIN = Origin("hinge", {"radius": 5, "name": "x"}, "0123", "some_solver", {"step": 0.1, "pair": (1, 2)}, {"numpy": "2.0"})
_RNG = np.random.default_rng(3)
HINGE = L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=10), radius=2.0)


def written(folder: Path, checkpoint: Checkpoint) -> Path:
    path = folder / "run.npz"
    with path.open("wb") as file:
        write_checkpoint(file, checkpoint)
    return path


def checkpoint_of(iterate: Iterate, **more: Any) -> Checkpoint:
    return Checkpoint(ORIGIN, iterate, **more)


_VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(), st.booleans(), arrays(np.float64, array_shapes(min_side=0)),
    arrays(np.int64, array_shapes(min_side=0)),
)  # fmt: skip


@given(
    state=st.none() | st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,20}", fullmatch=True), _VALUES, max_size=5),
    work=st.floats(0, 1e300),
)
def test_what_is_written_comes_back_to_the_bit(tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any] | None, work: float) -> None:
    if state is not None:
        state.pop(MAKER, None)
    primal, dual = _RNG.standard_normal((3, 2)), _RNG.standard_normal(4)
    proof = Proof(primal + 1.0, dual + 1.0, primal + 2.0)
    given_one = checkpoint_of(Iterate(primal, dual, 7, work, state=state), proof=proof, certificate=Certificate(2.0, -math.inf, 0.1, 1e-9))
    found = read_checkpoint("it", written(tmp_path_factory.mktemp("file"), given_one))
    assert found.origin.difference(ORIGIN) is None
    assert found.origin.changed_versions(ORIGIN) == []
    assert (found.iterate.step, found.iterate.work) == (7, work)
    assert np.array_equal(found.iterate.primal, primal)
    assert np.array_equal(found.iterate.dual, dual)
    assert found.certificate == given_one.certificate
    assert all(np.array_equal(getattr(found.proof, name), getattr(proof, name)) for name in ("point", "dual", "bound_point"))
    back = entries_of(found.iterate)
    assert (back is None) == (state is None)
    for name, value in (state or {}).items():
        assert np.array_equal(back[name], np.asarray(value), equal_nan=np.asarray(value).dtype.kind == "f")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (3, "must be a mapping"),
        ({"x": "text"}, "'x' must be a number or an array of float64 or int64, not str"),
        ({"x": np.zeros(2, np.float32)}, "not numbers of float32"),
        ({"x": 2**70}, "'x' must be a number"),
        ({3: 1.0}, "a name in it must be a word"),
        ({"../x": 1.0}, "a name in it must be a word"),
        ({MAKER: 3}, f"'{MAKER}' must be a text"),
        ({f"x{i}": i for i in range(10_001)}, "it has 10001 entries, and 10000 are allowed"),
        ({"x": np.broadcast_to(0.0, (2**40,))}, "bytes, and 4294967296 are allowed"),
        (lambda: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_nonsense_is_found_where_it_is_written(state: Any, words: str) -> None:
    with pytest.raises(InputError, match="the state of the solver cannot be stored") as error:
        with_plain_state(Iterate(np.zeros(2), state=state))
    assert words in str(error.value)


@pytest.mark.parametrize("iterate", [Iterate(np.array([1.0, np.nan])), Iterate(np.zeros(2), np.array([np.inf]))])
def test_a_point_that_is_none_is_not_written(tmp_path: Path, iterate: Iterate) -> None:
    with pytest.raises(InputError, match=r"point has (NaN|inf) at index"):
        written(tmp_path, checkpoint_of(iterate))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    *_, last = islice(SmoothedGradient().steps(HINGE), 30)
    return written(tmp_path_factory.mktemp("whole"), checkpoint_of(last, proof=Proof(last.primal, last.dual))).read_bytes()


def test_a_checkpoint_that_does_not_say_which_run_it_is_of_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, checkpoint_of(Iterate(np.zeros(2))))
    with np.load(path) as file:
        entries = dict(file)
    for change in ({"versions": None}, {"parameters": [1]}, {"solver": 1}):
        np.savez(path, **{**entries, "about": np.array(json.dumps({**json.loads(str(entries["about"])), **change}))})
        with pytest.raises(InputError, match="is no checkpoint"):
            read_checkpoint("--resume", path)


def test_entries_that_a_damaged_directory_hides_are_missed(tmp_path: Path, whole: bytes) -> None:
    """The length of a comment, 32 bytes into each record, decides where zipfile looks for the next one."""
    path = tmp_path / "run.npz"
    records = [match.start() for match in re.finditer(rb"PK\x01\x02", whole)]
    for record in records[:-1]:
        damaged = bytearray(whole)
        damaged[record + 33] ^= 128
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="is no checkpoint"):
            read_checkpoint("--resume", path)


def test_other_files_and_parts_of_one_are_refused(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "run.npz"
    with pytest.raises(InputError, match="--resume: there is no file"):
        read_checkpoint("--resume", path)
    for content in (b"", b"text", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is no checkpoint") as refused:
            read_checkpoint("--resume", path)
        assert "pickle" not in str(refused.value)
    np.save(path.with_suffix(".npy"), np.zeros(3))
    np.savez(path, solution=np.zeros(3))
    for other in (path, path.with_suffix(".npy")):
        with pytest.raises(InputError, match="is no checkpoint"):
            read_checkpoint("--resume", other)


def test_a_later_version_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, checkpoint_of(Iterate(np.zeros(2))))
    with np.load(path) as file:
        entries = {key: file[key] for key in file.files}
    for change, words in (
        ({"version": 3}, "a checkpoint of version 3, and this bench-mtl reads version 2"),
        ({"kind": "x"}, "it says that"),
    ):
        about = json.loads(str(entries["about"])) | change
        np.savez(path, **{**entries, "about": np.array(json.dumps(about))})
        with pytest.raises(InputError, match=words):
            read_checkpoint("--resume", path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"problem": "other"}, "problem hinge, not other"),
        ({"solver": "other"}, "solver some_solver, not other"),
        ({"parameters": {"radius": 6, "name": "x"}}, "parameter radius = 5, not 6"),
        ({"parameters": {"radius": 5}}, 'parameter name = "x", which is not given here'),
        ({"parameters": {"radius": 5, "name": "x", "more": 1}}, "no parameter more, which is 1 here"),
        ({"options": {"step": 0.2, "pair": (1, 2)}}, "option step = 0.1, not 0.2"),
        ({"data": "4567"}, "other data, or other code that makes them (fingerprint 0123, not 4567)"),
        ({"parameters": {"radius": 5.0, "name": "x"}, "options": {"step": 0.1, "pair": [1, 2]}}, None),
        ({"versions": {}}, None),
    ],
)
def test_runs_are_told_apart(change: dict[str, Any], words: str | None) -> None:
    assert ORIGIN.difference(dataclasses.replace(ORIGIN, **change)) == words


def test_other_versions_are_said() -> None:
    now = dataclasses.replace(ORIGIN, versions={"numpy": "2.1", "threads": "2"})
    assert ORIGIN.changed_versions(now) == ["numpy 2.0, now 2.1", "threads unknown, now 2"]
