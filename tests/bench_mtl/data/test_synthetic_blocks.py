"""Synthetic data in blocks: a block depends on the seed and its number alone, and shards of a folder are used again."""

import inspect
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.errors import InputError
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.data import BlockRecipe, TaskData, blocks_dense, blocks_sparse, load, read_shards, takes_seed, write_synthetic_shards
from bench_mtl.data.fingerprint import fingerprint
from bench_mtl.problems.l1inf_hinge import L1InfHinge

SPARSE = BlockRecipe(examples=50, features=30, tasks=3, nonzeros=4, relevant=0.2, shard_rows=20)
DENSE = BlockRecipe(examples=50, features=7, tasks=2, kind="regression", relevant=0.4, shard_rows=20)


def same(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    """Whether two blocks have the same bits."""
    (X, Y), (Z, T) = one, other
    parts = [(X.data, Z.data), (X.indices, Z.indices), (X.indptr, Z.indptr)] if sp.issparse(X) else [(X, Z)]
    return all(a.tobytes() == b.tobytes() for a, b in [*parts, (Y, T)])


@pytest.mark.parametrize("recipe", [SPARSE, DENSE])
def test_a_block_is_made_from_the_seed_and_its_number_alone(recipe: BlockRecipe) -> None:
    blocks = {number: recipe.block(number) for number in (2, 0, 1)}
    assert recipe.n_blocks == 3
    assert [blocks[number][0].shape[0] for number in range(3)] == [20, 20, 10]
    longer = replace(recipe, examples=1000)
    for number, block in blocks.items():
        assert same(block, replace(recipe).block(number))
        assert same(block, longer.block(number)) == (number < 2)
        assert not same(block, replace(recipe, seed=1).block(number))
    assert not same(blocks[0], blocks[1])
    np.testing.assert_array_equal(recipe.coefficients, longer.coefficients)


@pytest.mark.parametrize("recipe", [SPARSE, DENSE])
def test_what_is_read_is_the_blocks_one_below_the_other(tmp_path: Path, recipe: BlockRecipe) -> None:
    parts = [recipe.block(number) for number in range(recipe.n_blocks)]
    X = sp.csr_array(sp.vstack([X for X, _ in parts])) if recipe.nonzeros else np.concatenate([X for X, _ in parts])
    plain = TaskData.shared(X, np.concatenate([Y for _, Y in parts]))
    sizes = {name: getattr(recipe, name) for name in ("examples", "features", "tasks", "relevant", "shard_rows", "kind")}
    data = blocks_sparse(folder=tmp_path, **sizes, nonzeros=4) if recipe.nonzeros else blocks_dense(folder=tmp_path, **sizes)
    assert isinstance(data.design, ShardedDesign)
    assert (data.name, data.design.n_features) == (recipe.name, recipe.features)
    assert data.targets.tobytes() == plain.targets.tobytes()
    read, whole = data.design.restricted(np.arange(recipe.features)).block(0), plain.design.block(0)
    assert (read != whole).sum() == 0
    assert data.design.n_stored == plain.design.n_stored
    np.testing.assert_array_equal(data.truth["W"], recipe.coefficients)


@given(
    features=st.integers(2, 60), share=st.floats(0.01, 1.0), rows=st.integers(1, 40), seed=st.integers(0, 9), positive=st.booleans(),
    tasks=st.integers(1, 3),
)  # fmt: skip
def test_every_row_has_exactly_so_many_features(features: int, share: float, rows: int, seed: int, positive: bool, tasks: int) -> None:
    k = max(1, int(share * (features // 2)))
    recipe = BlockRecipe(
        examples=rows, features=features, tasks=tasks, nonzeros=k, seed=seed, values="positive" if positive else "gaussian"
    )  # fmt: skip
    X, Y = recipe.block(0)
    np.testing.assert_array_equal(X.indptr, np.arange(rows + 1) * k)
    assert X.indices.dtype == X.indptr.dtype == np.int32
    indices = X.indices.reshape(rows, k)
    assert (np.diff(indices, axis=1) > 0).all()
    assert 0 <= indices.min() <= indices.max() < features
    assert set(np.unique(Y)) <= {-1.0, 1.0}
    assert not positive or (X.data > 0.0).all()


def test_examples_have_a_norm_of_about_1_and_features_are_frequent_or_rare() -> None:
    recipe = BlockRecipe(examples=20_000, features=100, tasks=2, nonzeros=5, relevant=0.1, kind="regression", noise_std=0.0)
    X, Y = recipe.block(0)
    # The squared norm is chi-squared with k degrees of freedom over k: variance 2/k, so the mean of n has a deviation of sqrt(2/(k n)).
    assert abs((X.data**2).sum() / 20_000 - 1.0) < 6.0 * np.sqrt(2.0 / (5 * 20_000))
    counts = np.bincount(X.indices, minlength=100)
    # In 20,000 rows decades of features are in the order of their probabilities, which differ by far more than chance.
    decades = counts.reshape(10, 10).sum(axis=1)
    assert (np.diff(decades) < 0).all()
    assert 4.0 < decades[0] / decades[-1] < 20.0
    W = recipe.coefficients
    np.testing.assert_array_equal((W != 0.0).sum(axis=0), 10)
    assert len(np.flatnonzero(W.any(axis=1))) == 10
    np.testing.assert_array_equal(Y, X @ W)
    assert (Y.var(axis=0) > 0.2).all()
    assert (Y.var(axis=0) < 5.0).all()
    dense, _ = BlockRecipe(examples=2000, features=50).block(0)
    assert abs((dense**2).sum() / 2000 - 1.0) < 6.0 * np.sqrt(2.0 / (50 * 2000))


def test_shards_are_written_once_and_others_beside_them(tmp_path: Path) -> None:
    spec = {"name": "blocks_sparse", "folder": str(tmp_path / "kept"), "examples": 50, "features": 30, "nonzeros": 4, "shard_rows": 20}
    first = load(spec, seed=3)
    (made,) = (tmp_path / "kept").glob("blocks_sparse-*")
    times = {file: file.stat().st_mtime_ns for file in made.iterdir()}
    again = load({**spec, "seed": 3})
    assert times == {file: file.stat().st_mtime_ns for file in made.iterdir()}
    np.testing.assert_array_equal(first.targets, again.targets)
    load(spec, seed=4)
    load({**spec, "kind": "regression"}, seed=3)
    assert len(list((tmp_path / "kept").glob("blocks_sparse-*"))) == 3
    assert takes_seed(spec)
    origin = json.loads((made / "shards.json").read_text())["origin"]
    assert (origin["generator"], origin["numpy"], origin["parameters"]["seed"]) == ("blocks_sparse", np.__version__, 3)
    assert L1InfHinge(first, radius="truth").dimensions["n"] == 50


def test_shards_that_are_not_what_they_should_be_are_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"folder": tmp_path, "examples": 30, "features": 5}
    blocks_dense(**options)
    (made,) = tmp_path.glob("blocks_dense-*")
    manifest = made / "shards.json"
    text = manifest.read_text()
    for other in (text.replace('"seed": 0', '"seed": 1'), "[]"):
        manifest.write_text(other)
        with pytest.raises(InputError, match="holds other data than blocks_dense has under that name: remove it"):
            blocks_dense(**options)
    manifest.write_text(text)
    (made / "00000.npy").unlink()
    with pytest.raises(InputError, match=r"00000\.npy is missing"):
        blocks_dense(**options)
    manifest.unlink()
    with pytest.raises(InputError, match="exists: shards are written to a new folder"):
        blocks_dense(**options)


def test_two_that_ask_at_once_get_the_same_and_write_once(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom bench_mtl.data import blocks_dense\n"
        "from bench_mtl.data.synthetic import blocks\n"
        "plain = blocks.write_synthetic_shards\n"
        "def told(*arguments):\n    print('written')\n    return plain(*arguments)\n"
        "blocks.write_synthetic_shards = told\n"
        "sys.stdin.readline()\n"
        "blocks_dense(folder=sys.argv[1], examples=200000, features=20, shard_rows=20000)\n"
    )
    words = [sys.executable, "-c", script, str(tmp_path)]
    runs = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ) for _ in range(2)]
    for run in runs:
        run.stdin.write("\n")
        run.stdin.flush()
    said = [run.communicate(timeout=60)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert sorted(said) == ["", "written\n"]
    (made,) = tmp_path.glob("blocks_dense-*")
    assert read_shards(made, verify=True).design.output_shape == (200000, 1)


def test_fingerprints_tell_recipes_apart_and_not_folders_and_read_no_data(tmp_path: Path) -> None:
    spec = {"name": "blocks_dense", "folder": "a", "examples": 30}
    assert fingerprint(spec, seed=0) == fingerprint({**spec, "folder": "b"}, seed=0)
    assert fingerprint(spec, seed=0) != fingerprint(spec, seed=1)
    assert fingerprint(spec, seed=0) != fingerprint({**spec, "examples": 31}, seed=0)
    manifest = write_synthetic_shards(tmp_path / "set", DENSE)
    of_numpy = replace(DENSE, examples=np.int64(DENSE.examples), seed=np.uint8(DENSE.seed))
    again = write_synthetic_shards(str(tmp_path / "again"), of_numpy)
    assert again.read_bytes() == manifest.read_bytes()
    before = fingerprint({"file": str(manifest)})
    for file in manifest.parent.glob("*.npy"):
        file.unlink()  # the manifest has the hashes of all of them
    assert fingerprint({"file": str(manifest)}) == before
    other = write_synthetic_shards(tmp_path / "other", replace(DENSE, seed=1))
    assert fingerprint({"file": str(other)}) != before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folder": None}, "blocks_sparse needs folder, the path of a folder where its shards are stored, not None"),
        ({"examples": 0}, "examples must be a whole number of at least 1, not 0"),
        ({"nonzeros": 6}, "nonzeros must be at most 5, half the number of features, not 6"),
        ({"relevant": 1.5}, r"relevant must be above 0 and at most 1, not 1.5"),
        ({"kind": "classes"}, "kind must be one of regression, labels"),
        ({"values": "gausian"}, "did you mean 'gaussian'"),
        ({"n": 3}, "unknown key for data 'blocks_sparse' 'n'"),
    ],
)
def test_unusable_parameters(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    spec = {"name": "blocks_sparse", "folder": str(tmp_path / "new"), "features": 10, "nonzeros": 2, **options}
    with pytest.raises(InputError, match=message):
        load(spec)
    assert not (tmp_path / "new").exists()


def test_options_of_other_types_are_refused_by_name(tmp_path: Path) -> None:
    for name in (*inspect.signature(BlockRecipe).parameters, "folder"):
        for value in ([], -1):
            with pytest.raises(InputError, match=name):
                load({"name": "blocks_sparse", "folder": str(tmp_path / "new"), "features": 10, "nonzeros": 2, name: value})
    assert not (tmp_path / "new").exists()


def test_other_unusable_calls(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are 3 blocks, numbered from 0, and none has the number 3"):
        DENSE.block(3)
    with pytest.raises(InputError, match="values of dense examples are gaussian"):
        replace(DENSE, values="positive")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be used"):
        blocks_dense(folder=tmp_path / "file" / "below", examples=3)
