"""`bench-mtl certify`: a file that makes a model, and what is proven of its value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MODEL = """
import cvxpy
x = cvxpy.Variable(2, name="x")
problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x)), [x >= 1])
flat = cvxpy.Problem(cvxpy.Minimize(x[0]), [x[0] + x[1] == 1, x[0] + x[1] <= 1, x >= 0])
number = 3
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path / "model.py"


def test_a_model_of_a_file_is_enclosed(command: Callable[..., Any], model: Path) -> None:
    result = command("certify", f"{model}:problem", "--solver", "ECOS")
    assert (result.code, result.err) == (0, [])
    assert "<= optimum <=" in result.out[0]
    document = json.loads("\n".join(command("certify", f"{model}:problem", "--json", "--judge", "answer", "--bound", "x=10").out))
    assert document["lower"] <= 2.0 <= document["upper"]
    assert document["values"]["x"] == pytest.approx([1.0, 1.0], rel=1e-6)
    assert document["why"][-1] == "taken on trust: |x| <= 10"


def test_a_bound_that_is_missing_ends_with_1(command: Callable[..., Any], model: Path) -> None:
    result = command("certify", f"{model}:flat", "--solver", "CLARABEL")
    assert result.code == 1
    assert "no interior" in result.out[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{}:problm"], "unknown problem of model.py 'problm': did you mean 'problem'"),
        (["{}:number"], "unknown problem of model.py 'number'"),
        (["{}"], "the model must be FILE.py:NAME"),
        (["nowhere.py:problem"], "there is no file nowhere.py"),
        (["{}:problem", "--bound", "y=1"], "unknown variable 'y'"),
        (["{}:problem", "--solver", "NOBODY"], "CVXPY refuses the model"),
    ],
)
def test_mistakes_are_one_line(command: Callable[..., Any], model: Path, words: list[str], said: str) -> None:
    result = command("certify", *[word.format(model) for word in words])
    assert (result.code, len(result.err)) == (2, 1)
    assert said in result.err[0]


def test_a_file_that_raises_is_named(command: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1 / 0")
    result = command("certify", f"{tmp_path / 'bad.py'}:problem")
    assert (result.code, result.err) == (2, [f"bench-mtl: {tmp_path / 'bad.py'} does not run: ZeroDivisionError: division by zero"])
