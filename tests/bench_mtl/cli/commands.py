"""What tests of commands share: small suites and problems, and how a command may end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]

Command = Callable[..., Any]

#: Options of a problem that any solver of hinges solves at once.
SMALL = ["--data", "synthetic_l1inf", "--data-option", "tasks=3", "--data-option", "features=8", "--data-option", "examples=10"]
HINGE = ["l1inf_hinge", "projected_subgradient", *SMALL, "--target", "1e-2"]

#: A problem of the plug-ins that projected gradients solve in a step.
BOX = '[[problems]]\nname = "box"\nlabel = "tiny"\ndata = { name = "synthetic_l1inf", tasks = 2, features = 5, examples = 6 }\n'


def suite_of(*solvers: str, head: str = "", problems: str = BOX) -> str:
    """The text of a suite, `head` its first lines, on the box unless there are other problems."""
    entries = "".join(f'\n[[solvers]]\nname = "{solver}"\n' for solver in solvers)
    return f'name = "tiny"\ntargets = [1e-2]\nlimits = {{ seconds = 10.0 }}\n{head}\n{problems}{entries}'


def refused(result: Any) -> str:
    """The one line of a mistake; asserts exit code 2, and that nothing else was said."""
    assert (result.code, len(result.err), result.out) == (2, 1, []), result
    line = str(result.err[0])
    assert line.startswith("bench-mtl: ")
    assert len(line) < 1_000, "a list that nobody reads"
    return line


def document(result: Any) -> dict[str, Any]:
    """The one document on standard output: strict JSON, a table."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    table = json.loads("\n".join(result.out), parse_constant=refuse)
    assert isinstance(table, dict)
    return table


def table_of_flowers(path: Path) -> None:
    """Write twenty rows of three features and the labels red and round."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    Y = (X @ rng.standard_normal((3, 2)) > 0.0).astype(int)
    lines = [",".join([*(f"{x:.6f}" for x in row), *map(str, labels)]) for row, labels in zip(X, Y, strict=True)]
    path.write_text("\n".join(["a,b,c,red,round", *lines, ""]))


#: The line of the plug-ins that raises.
SOURCE = r'    raise RuntimeError("two lines\nof trouble")'


def line_of(file: Path, text: str) -> str:
    """The place of the first line of a file that holds a text, as commands say it."""
    number = next(number for number, line in enumerate(file.read_text().splitlines(), start=1) if text in line)
    return f"{file.parent.name}/{file.name}:{number}"
