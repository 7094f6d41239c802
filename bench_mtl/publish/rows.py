"""The rows behind a page as CSV and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.report.columns import to_csv
from bench_mtl.results.loading import OF_READING

if TYPE_CHECKING:
    import pandas as pd

#: Columns whose texts are JSON.
_TABLES = ("data", "parameters", "dimensions", "notes", "options", "limits", "info")


def runs_csv(runs: pd.DataFrame) -> bytes:
    """Return runs with the columns that reports write; the machine only where there are several."""
    several = (runs["machine"] != "").any()
    return to_csv(runs.drop(columns=[*OF_READING, *([] if several else ["machine"])]))


def rows_json(runs: pd.DataFrame, environments: Sequence[Mapping[str, Any]], **about: Any) -> bytes:
    """Return runs, the environments that they were made in, and `about` them, as one JSON object in ASCII.

    What the rows hold as JSON stands in it as objects; what is missing, or infinite, is null.
    """
    made_in = set(runs["environment_id"])
    columns = [column for column in runs.columns if column not in (*OF_READING, "machine")]
    rows = [
        {column: _parsed(column, value) for column, value in zip(columns, row, strict=True)}
        for row in runs[columns].itertuples(index=False, name=None)
    ]
    content = {**about, "environments": [entry for entry in environments if entry["id"] in made_in], "runs": rows}
    return (json.dumps(_finite(content), indent=1, allow_nan=False) + "\n").encode("ascii")


def _parsed(column: str, value: Any) -> Any:
    return json.loads(value) if column in _TABLES and isinstance(value, str) else value


def _finite(value: Any) -> Any:
    """Return a value in the types of JSON."""
    import pandas as pd

    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if value is pd.NA or not math.isfinite(value):
        return None
    return value.item() if hasattr(value, "item") else value
