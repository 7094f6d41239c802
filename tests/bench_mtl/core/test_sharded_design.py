"""Designs in shards: norms by few passes, bits that do not depend on where the shards are, and the files that they are read from.

What they give is what designs in memory give: `test_designs.py`.
"""

import fcntl
import itertools
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from deeds_of_workers import targets_of

from bench_mtl.core.designs import PerTaskDesign
from bench_mtl.core.errors import IncompleteError, InputError
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.shards import Shards
from bench_mtl.core.types import Array
from bench_mtl.data.readers import read_shards, write_shards

pytestmark = pytest.mark.numerics

N, D, M = 23, 7, 3


def features(kind: str) -> Any:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.6)
    return sp.csr_array(X) if kind == "sparse" else X


def held(X: Any, cuts: tuple[int, ...]) -> Shards:
    ends = [0, *cuts, X.shape[0]]
    return Shards.held([(X[start:end], np.zeros((end - start, M))) for start, end in itertools.pairwise(ends)])


def norm_of(parts: list[Array]) -> float:
    return ShardedDesign(Shards.held([(part, np.zeros((len(part), 1))) for part in parts])).norm()


@pytest.mark.parametrize("seed", range(10))
def test_the_norm_of_many_features_is_near(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((9, 600)) * 10.0 ** rng.integers(-3, 3) for _ in range(1 + 2 * seed)]
    exact = float(np.linalg.norm(np.concatenate(parts), 2))
    assert 0.98 * exact <= norm_of(parts) <= 1.01 * exact  # an estimate: eigenvalues that are close to each other are found late


@pytest.mark.parametrize("others", ["equal", "spread"])
@pytest.mark.parametrize("rise", [0.25, 1.0, 10.0])
def test_one_eigenvalue_above_all_others_is_found(rise: float, others: str) -> None:
    """The first residual does not show it: it is the rise over the root of the size."""
    d = 20_000
    for place in np.linspace(0, d - 1, 5).astype(int):
        values = np.ones(d) if others == "equal" else np.random.default_rng(d).random(d)
        values[place] = np.sqrt(1.0 + rise)
        X = sp.csr_array(sp.diags_array(values))
        norm = ShardedDesign(Shards.held([(X, np.zeros((d, 1)))])).norm()
        assert norm == pytest.approx(np.sqrt(1.0 + rise), rel=0.02)


#: The leading vector of a sample may be one of the whole, too, of a smaller eigenvalue; or there is nothing in it.
ODD = {
    "identity": [np.eye(600)],
    "rank one": [np.ones((5, 600))],
    "zero": [np.zeros((5, 600))],
    "others in the sample": [np.ones((5, 1)) * (np.arange(900) == 100 * k) * (1.0 + k / 9.0) for k in range(9)],
    "nothing in the sample": [np.ones((5, 1)) * (np.arange(900) == 7) * size for size in (0.0, 0.0, 2.0)],
}


@pytest.mark.parametrize("name", ODD)
def test_norms_of_odd_shards(name: str) -> None:
    assert norm_of(ODD[name]) == pytest.approx(np.linalg.norm(np.concatenate(ODD[name]), 2), rel=0.02 if "sample" in name else 1e-6)


def test_shards_that_are_not_alike_or_damaged_are_refused(tmp_path: Path) -> None:
    X, Y = features("dense"), np.ones((N, 1))
    for parts, words in (
        ([(X, Y), (X[:, :6], Y)], r"part 1 has features 6, but part 0 has 7"),
        ([], "no part"),
        ([(np.full((2, 2), np.nan), Y[:2])], "X of part 0"),
        ([(X, Y[:3])], "rows must agree"),
    ):
        with pytest.raises(InputError, match=words):
            write_shards(tmp_path / "a", parts)
    assert list(tmp_path.iterdir()) == []  # nothing half written
    manifest = write_shards(tmp_path / "a", [(X, Y)])
    with pytest.raises(InputError, match="exists"):
        write_shards(tmp_path / "a", [(X, Y)])
    file = manifest.parent / "00000.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    read_shards(manifest)
    with pytest.raises(InputError, match=r"00000\.npy is not what was written"):
        read_shards(manifest, verify=True)
    file.write_bytes(content[:-8])
    with pytest.raises(InputError, match=r"00000\.npy has \d+ bytes, and \d+ were written"):
        read_shards(manifest)
    file.unlink()
    with pytest.raises(InputError, match=r"00000\.npy is missing"):
        read_shards(manifest)
    manifest.write_text("{}")
    with pytest.raises(InputError, match="not readable as a manifest of shards"):
        read_shards(manifest)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_files_that_are_not_what_the_manifest_says_are_refused_when_they_are_used(kind: str, tmp_path: Path) -> None:
    """Compiled code believes shapes and indices: a wrong one would end the process, or another array. Who has read the manifest wants the
    files that were there; others, as workers, may see copies with other times."""
    manifest = write_shards(tmp_path / "set", [(features(kind), np.ones((N, 1)))])
    read, W = read_shards(manifest).design, np.ones((D, 1))
    design, expected = pickle.loads(pickle.dumps(read)), read.forward(W)
    changes: dict[str, list[Callable[[Any], Any]]] = {
        "dense": [lambda X: X[1:], lambda X: X[:, 1:], lambda X: X.astype(np.float32)],
        "sparse": [lambda i, place=place: np.where(np.arange(len(i)) == 0, place, i) for place in (-1, D, 2**30)]
        + [lambda i: i[::-1], lambda i: i[1:]],
    }
    files = {"dense": ["00000.npy"], "sparse": ["00000.indices.npy", "00000.indptr.npy", "00000.data.npy"]}[kind]
    for file, change in ((manifest.parent / name, change) for name in files for change in changes[kind]):
        before = file.read_bytes()
        array = np.load(file)
        if not (file.name == "00000.data.npy" and len(change(array)) == len(array)):  # any numbers are data
            np.save(file, change(array).astype(array.dtype if kind == "sparse" else change(array).dtype))
            with pytest.raises(InputError, match=rf"shard 00000 in .* is not {N} rows of {D} features"):
                design.forward(W)
            file.write_bytes(before)
        np.testing.assert_array_equal(design.forward(W), expected)
    with pytest.raises(InputError, match="its files have changed"):
        read.forward(W)
    manifest.write_text(manifest.read_text().replace(f'"features": {D}', f'"features": {D - 1}'))
    with pytest.raises(InputError, match=f"is not {N} rows of {D - 1} features"):
        read_shards(manifest).design.forward(W[1:])
    np.save(manifest.parent / "00000.targets.npy", np.ones((1, 1)))
    with pytest.raises(InputError, match="is not"):
        next(iter(design.shards.map(targets_of)))


def test_what_killed_commands_have_left_is_removed_and_a_full_disk_is_called_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left, used = (tmp_path / f".set-bench-mtl-{name}" for name in ("left", "used"))
    for folder in (left, used):
        (folder / "set").mkdir(parents=True)
    descriptor = os.open(used, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    write_shards(tmp_path / "set", [(features("dense"), np.ones((N, 1)))])
    os.close(descriptor)
    assert sorted(path.name for path in tmp_path.iterdir()) == [used.name, "set"]

    def full(*_: Any, **__: Any) -> None:
        raise OSError("100 requested and 0 written")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(IncompleteError, match=r"shards cannot be written to .*other: No space left on device"):
        write_shards(tmp_path / "other", [(features("dense"), np.ones((N, 1)))])
    assert not (tmp_path / "other").exists()


def test_shards_of_tasks_are_written_and_read(tmp_path: Path) -> None:
    X, y = features("dense"), np.random.default_rng(4).standard_normal(N)
    parts = [(X[:9], y[:9]), (X[9:12], y[9:12]), (X[12:], y[12:])]
    data = read_shards(write_shards(tmp_path / "set", parts, tasks=[0, 0, 1]), verify=True)
    assert data.design.sizes == (12, 11)
    np.testing.assert_array_equal(data.targets, y)
    plain = PerTaskDesign([X[:12], X[12:]])
    np.testing.assert_allclose(data.design.adjoint(y), plain.adjoint(y), rtol=1e-13, atol=1e-13)
    for tasks, words in (([0, 1], "tasks has 2 entries, but there are more parts"), ([0, 0, 1, 2], "has 4 entries, but there are 3 parts")):
        with pytest.raises(InputError, match=words):
            write_shards(tmp_path / "other", parts, tasks=tasks)
    for tasks, words in (([0, 2, 2], "tasks must ascend"), ([1, 0, 1], "ascend")):
        with pytest.raises(InputError, match=words):
            write_shards(tmp_path / "other", parts, tasks=tasks)
    with pytest.raises(InputError, match="targets are one column, not 2"):
        write_shards(tmp_path / "other", [(X, np.ones((N, 2)))], tasks=[0])
    assert not (tmp_path / "other").exists()
