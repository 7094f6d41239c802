"""Patterns of single matrices, against what they are defined by."""

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bench_mtl.model import patterns
from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY, numerical_rank, pack, part_names, parts, patterns_of, unpack
from bench_mtl.results import Pattern

MASKS = hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=40))


@given(mask=MASKS)
def test_a_mask_comes_back_as_it_was(mask: np.ndarray) -> None:
    bits = pack(mask)
    back = unpack(bits, *mask.shape)
    assert back.dtype == np.bool_
    assert np.array_equal(back, mask)
    assert np.array_equal(Pattern(3, "W", int(mask.sum()), None, mask.shape, bits).mask, mask)


@given(mask=MASKS, data=st.data())
def test_damaged_bits_are_refused(mask: np.ndarray, data: st.DataObject) -> None:
    bits = pack(mask)
    place = data.draw(st.integers(0, len(bits) - 1))
    damaged = bytes([*bits[:place], bits[place] ^ data.draw(st.integers(1, 255)), *bits[place + 1 :]])
    for wrong in (damaged, bits[:place], b"", zlib.compress(bytes(10**7))):
        try:
            back = unpack(wrong, *mask.shape)
        except ValueError:
            continue
        assert wrong == damaged, "bits that mean nothing to zlib"
        assert np.array_equal(back, mask)
    with pytest.raises(ValueError, match="bytes"):
        unpack(bits, mask.shape[0] + 1, max(8, mask.shape[1]))


@given(point=hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6), elements=st.floats(allow_nan=True)))
def test_every_finite_part_has_its_pattern_and_no_other_has_one(point: np.ndarray) -> None:
    matrices = parts(point)
    found = {pattern.part: pattern for pattern in patterns_of(matrices)}
    assert sum(matrix.size for matrix in matrices.values()) == point.size
    for name, matrix in matrices.items():
        assert (name in found) == np.isfinite(matrix).all()
        if name not in found:
            continue
        pattern, largest = found[name], np.abs(matrix).max()
        assert (pattern.rows, pattern.columns) == matrix.shape
        assert pattern.nonzeros == np.count_nonzero(matrix)
        mask = unpack(pattern.bits, *matrix.shape)
        assert np.array_equal(mask, np.abs(matrix) > NEGLIGIBLE_ENTRY * largest)
        assert mask.sum() <= pattern.nonzeros
        assert isinstance(pattern.rank, int)
        assert (pattern.rank == 0) == (largest == 0.0)


def test_tiny_entries_are_counted_and_not_shown() -> None:
    W = np.array([[5.0, -1e-3], [4e-6, -6e-6], [0.0, 1e-300]])
    (pattern,) = patterns_of({"W": W})
    assert (pattern.nonzeros, pattern.rank) == (5, 2)
    assert unpack(pattern.bits, 3, 2).tolist() == [[True, True], [False, True], [False, False]]
    for factor in (1e-300, 1e-12, 1e300):
        (scaled,) = patterns_of({"W": W * factor})
        assert (scaled.bits, scaled.rank) == (pattern.bits, pattern.rank)
    with np.errstate(all="raise"):  # nothing that a solver has set is in the way
        (pattern,) = patterns_of({"W": np.array([[1.0, 1e-200], [1e-200, 5e-324]])})
    assert (pattern.nonzeros, pattern.rank) == (4, 1)


@given(seed=st.integers(0, 2**32), rows=st.integers(1, 60), columns=st.integers(1, 60), scale=st.sampled_from([1e-200, 1e-9, 1.0, 1e200]))
def test_the_rank_is_the_number_of_singular_values_that_are_not_small(seed: int, rows: int, columns: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    smaller = min(rows, columns)
    left, right = (np.linalg.qr(rng.normal(size=(side, smaller)))[0] for side in (rows, columns))
    values = np.where(rng.random(smaller) < 0.5, 10.0 ** rng.uniform(-5.8, 0.0, smaller), 10.0 ** rng.uniform(-14.0, -6.2, smaller))
    values[0] = 1.0
    matrix = scale * (left * values) @ right.T
    assert numerical_rank(matrix) == numerical_rank(matrix.T) == np.count_nonzero(values > NEGLIGIBLE_ENTRY)
    assert numerical_rank(0.0 * matrix) == 0


def test_what_is_too_large_has_no_pattern_or_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = np.ones((201, 202))
    assert [pattern.rank for pattern in patterns_of({"W": wide, "V": wide[:200], "T": wide.T[:, :200]})] == [None, 1, 1]
    monkeypatch.setattr(patterns, "MOST_ENTRIES", 201 * 202 - 1)
    assert [pattern.part for pattern in patterns_of({"W": wide, "V": wide[:200]})] == ["V"]


def test_a_point_has_the_parts_of_its_shape() -> None:
    assert [part_names(shape) for shape in [(4,), (4, 3), (2, 4, 3), (3, 4, 3)]] == [("W",), ("W",), ("P", "Q"), ("P1", "P2", "P3")]
    assert {name: part.shape for name, part in parts(np.ones(4)).items()} == {"W": (4, 1)}
    assert {name: part.shape for name, part in parts(np.ones((2, 4, 3)), ["a", "b"]).items()} == {"a": (4, 3), "b": (4, 3)}


@pytest.mark.parametrize(
    "names", [(), ("a",), ("a", "b", "c"), ("a", "a"), ("a", 7), ("a", ""), ("a", "\ud800"), ("a", "b" * 101), ("a", "\n")]
)
def test_names_that_are_none_are_refused_and_points_of_other_kinds(names: Any) -> None:
    with pytest.raises(ValueError, match=r"names|zip"):
        parts(np.ones((2, 4, 3)), names)
    for shape in ((), (2, 2, 2, 2)):
        with pytest.raises(ValueError, match="1 to 3 dimensions"):
            parts(np.ones(shape))
