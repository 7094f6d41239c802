"""Names in messages: the nearest one, and not endless lists."""

from __future__ import annotations

import pytest

from bench_mtl.core.checks import one_of
from bench_mtl.core.errors import InputError, did_you_mean, nearest, unknown
from bench_mtl.core.text import shortened

MANY = [f"name{number}" for number in range(30)]


def test_the_nearest_name_does_not_mind_upper_case() -> None:
    assert nearest("clarable", ["CLARABEL"]) == "CLARABEL"
    assert nearest("problems", ["solvers"], cutoff=0.75) is None
    assert did_you_mean("zzz", ["pdhg"]) == ""


def test_errors_suggest_and_stay_short() -> None:
    assert str(unknown("solver", "naem3", MANY)).startswith("unknown solver 'naem3': did you mean 'name3'? allowed: name3, ")
    assert len(str(unknown("solver", "x" * 10_000, MANY))) < 1_200
    assert str(unknown("solver", "pdhg", MANY, more="bench-mtl list")).endswith(" and 25 more: bench-mtl list")
    with pytest.raises(InputError, match=r"^method must be one of newton, merge, not 'nwton': did you mean 'newton'\?$"):
        one_of("method", "nwton", ("newton", "merge"))


def test_long_titles_lose_their_middle() -> None:
    lengths = {10: "abcdefghij", 9: "abc...hij", 8: "abc...ij", 4: "a...", 3: "abc", 0: "", -5: ""}
    assert {longest: shortened("abcdefghij", longest) for longest in lengths} == lengths
