"""Names in messages: the nearest one, and not endless lists."""

import copy
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest

from bench_mtl.core.checks import one_of, real_array, real_number, require_shape, whole_number
from bench_mtl.core.errors import InputError, did_you_mean, nearest, unknown
from bench_mtl.core.text import shortened

MANY = [f"name{number}" for number in range(30)]


def test_the_nearest_name_does_not_mind_upper_case() -> None:
    assert nearest("clarable", ["CLARABEL"]) == "CLARABEL"
    assert nearest("problems", ["solvers"]) is None
    assert did_you_mean("zzz", ["pdhg"]) == ""


def test_errors_suggest_and_stay_short() -> None:
    assert unknown("solver", "foo", ["qoco"]).near is None
    assert str(unknown("solver", "naem3", MANY)).startswith("unknown solver 'naem3': did you mean 'name3'? allowed: name3, ")
    assert len(str(unknown("solver", "x" * 10_000, MANY))) < 1_200
    assert str(unknown("solver", "pdhg", MANY, more="bench-mtl list")).endswith(" and 25 more: bench-mtl list")
    with pytest.raises(InputError, match=r"^method must be one of newton, merge, not 'nwton': did you mean 'newton'\?$"):
        one_of("method", "nwton", ("newton", "merge"))


class Nameless:
    def __repr__(self) -> str:
        raise RuntimeError


#: What is refused, and what the error holds: the argument, its value, what is allowed, the nearest name, and the sentence.
FIELDS = {
    "number": (lambda: real_number("tau", np.float64(1.5), strict=True, below=1.0), 1.5, "above 0 and below 1", "not 1.5"),
    "whole": (lambda: whole_number("tau", np.int64(7), maximum=5), 7, "a whole number of at least 0 and at most 5", "not 7"),
    "kind": (lambda: real_number("tau", np.ones(9)), ..., "a number", "not ndarray"),
    "class": (lambda: real_number("tau", float), "type", "a number", "not the class float"),
    "no words": (lambda: real_number("tau", [Nameless()]), ..., "a number", "not this list"),
    "long": (lambda: real_number("tau", "x" * 10_000), ..., "a number", f"not '{'x' * 199}..."),
    "huge": (lambda: whole_number("tau", -(10**9999)), ..., "a whole number of at least 0", "not this int"),
    "shape": (lambda: require_shape("tau", np.ones(3), (2, 3), why=" to match X"), (3,), "have shape (2, 3) to match X", "but has (3,)"),
    "dimension": (lambda: real_array("tau", [1.0], ndim=2), (1,), "have 2 dimension(s)", "but has shape (1,)"),
    "entry": (lambda: real_array("tau", [0.0, np.inf]), np.inf, "finite", "inf at index 1: only finite numbers are allowed"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_an_error_of_an_argument_has_fields_and_a_sentence(name: str) -> None:
    call, value, allowed, end = FIELDS[name]
    with pytest.raises(InputError) as raised:
        call()
    error = raised.value
    assert (error.argument, error.allowed, error.near) == ("tau", allowed, None)
    assert value is ... or error.value == value
    assert str(error).startswith("tau ")
    assert str(error).endswith(end)


def test_fields_name_the_nearest_and_survive_copies() -> None:
    with pytest.raises(InputError) as raised:
        one_of("method", "nwton", ("newton", "merge"))
    for error in (raised.value, copy.copy(raised.value), pickle.loads(pickle.dumps(raised.value))):
        assert (error.argument, error.value, error.allowed, error.near) == ("method", "nwton", "one of newton, merge", "newton")
        assert str(error) == str(raised.value)
    inner = raised.value.within("file.npz")
    assert (inner.argument, inner.near, str(inner)) == ("method", "newton", f"file.npz: {raised.value}")
    assert InputError("damaged").within("file.npz").argument is None
    error = unknown("solver", "pdgh", ["pdhg", "scs"])
    assert (error.argument, error.value, error.allowed, error.near) == ("solver", "pdgh", "pdhg, scs", "pdhg")
    sentence = InputError("the file is damaged")
    assert (sentence.argument, sentence.value, sentence.allowed, str(sentence)) == (None, None, None, "the file is damaged")


def test_long_titles_lose_their_middle() -> None:
    lengths = {10: "abcdefghij", 9: "abc...hij", 8: "abc...ij", 4: "a...", 3: "abc", 0: "", -5: ""}
    assert {longest: shortened("abcdefghij", longest) for longest in lengths} == lengths


def test_errors_hold_no_data_and_can_be_sent() -> None:
    for value in (np.zeros(10**5), lambda: 0, [object()]):
        error = pickle.loads(pickle.dumps(InputError("x", value, "one")))
        assert (error.argument, error.value, error.allowed) == ("x", type(value).__name__, "one")
        assert len(pickle.dumps(error)) < 1000


def test_numbers_are_shown_as_they_are() -> None:
    for value, shown in ((60.0, "without a decimal point, not 60.0"), (1.0000001, "not 1.0000001"), (-1, "not -1")):
        with pytest.raises(InputError, match=rf"^tasks must be a whole number of at least 1.*{re.escape(shown)}$"):
            whole_number("tasks", value, minimum=1)
    with pytest.raises(InputError, match=r"^x must be a number, not .*$"):
        real_number("x", Fraction(10) ** 400)
