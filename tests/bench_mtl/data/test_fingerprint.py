"""Fingerprints change when the data do, and only then."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.data.fingerprint import _code_digest, fingerprint

TINY = {"name": "synthetic_l1inf", "tasks": 2, "features": 4, "examples": 5}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.savez(tmp_path / "mine.npz", X=np.eye(3), Y=np.ones((3, 2)))
    return tmp_path


def test_what_is_asked_for_tells_generated_data_apart() -> None:
    asked = [(TINY, 0), (TINY, 1), (TINY | {"tasks": 3}, 0), (TINY | {"preprocess": "unit_rows"}, 0), ({"name": "digits"}, None)]
    prints = [fingerprint(spec, seed=seed) for spec, seed in asked]
    assert len(set(prints)) == len(asked)
    assert prints == [fingerprint(dict(reversed(spec.items())), seed=seed) for spec, seed in asked]


def test_the_bytes_of_a_file_count_and_not_its_place(folder: Path) -> None:
    named = fingerprint({"name": "mine"}, data_dir=folder)
    elsewhere = folder / "below"
    elsewhere.mkdir()
    shutil.copy(folder / "mine.npz", elsewhere / "moved.npz")
    assert fingerprint({"file": str(elsewhere / "moved.npz")}) == named
    assert fingerprint({"name": "mine", "preprocess": "unit_rows"}, data_dir=folder) != named
    np.savez(folder / "mine.npz", X=2 * np.eye(3), Y=np.ones((3, 2)))
    assert fingerprint({"name": "mine"}, data_dir=folder) != named


def test_the_seed_of_a_file_counts_where_rows_are_drawn(folder: Path) -> None:
    def of(seed: int, **options: object) -> str:
        return fingerprint({"name": "mine", **options}, data_dir=folder, seed=seed)

    assert of(0) == of(1)
    assert of(0, held_out=1) != of(1, held_out=1)
    assert len({of(0), of(0, held_out=1), of(0, examples=2), of(0, preprocess="perceptron_kernel")}) == 4


def test_a_file_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(InputError, match="'mime'"):
        fingerprint({"name": "mime"}, data_dir=folder)


def test_the_file_that_names_labels_counts(tmp_path: Path) -> None:
    """Mulan's XML, beside an ARFF file or given by name."""
    (tmp_path / "f.arff").write_text("@relation r\n@attribute x numeric\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n1,1,0\n2,0,1\n")
    for name, option in (("f.xml", {}), ("other.xml", {"labels": "other.xml"})):
        found = []
        for label in "ab":
            (tmp_path / name).write_text(f'<labels><label name="{label}"/></labels>')
            found.append(fingerprint({"file": "f.arff", **option}, data_dir=tmp_path))
        assert found[0] != found[1]
        (tmp_path / name).unlink()


def test_the_weak_learners_that_preprocess_count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where something is preprocessed."""
    plain, stumps = {"file": "own.csv", "targets": 1}, {"file": "own.csv", "targets": 1, "preprocess": "stumps:2"}
    (folder / "own.csv").write_text("a,b\n1,2\n2,3\n")
    before = [fingerprint(spec, data_dir=folder) for spec in (plain, stumps)]
    module = sys.modules[fingerprint.__module__]
    monkeypatch.setattr(module, "_code_digest", lambda place: "other" if place.name == "weak_learners" else _code_digest(place))
    after = [fingerprint(spec, data_dir=folder) for spec in (plain, stumps)]
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False]
