"""The label sets of Chen, Liu, Ye (TKDD 2012, table I), and what is in the place of those that are lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_mtl.data import TaskData, load


@dataclass(frozen=True)
class LabelSet:
    """A data set with many labels."""

    name: str
    """Name of the file."""
    steps: tuple[str, ...]
    """Preprocessing; its statistics are those of the training examples."""
    labels: int | None = None
    """How many, the most frequent ones; None: all."""
    examples: int | None = None
    """How many, drawn at random for each repetition; None: all."""

    @property
    def spec(self) -> dict[str, Any]:
        """The whole file, as `bench_mtl.data.load` takes it."""
        return {"name": self.name} | ({} if self.labels is None else {"labels": self.labels})


#: "All of the benchmark data sets are normalized", the paper says, and for the web pages refers to work that has these two steps.
_DENSE, _WORDS = ("standardise", "unit_rows"), ("tfidf", "unit_rows")

#: Examples of each stage range in tables VII and VIII, with its 10 and its 20 most frequent terms.
STAGES: Mapping[int, Mapping[str, int]] = {
    10: {"4-6": 925, "7-8": 797, "9-10": 919, "11-12": 1622, "13-16": 2228},
    20: {"4-6": 1023, "7-8": 827, "9-10": 1015, "11-12": 1940, "13-16": 2476},
}

SETS: Mapping[str, LabelSet] = {
    "scene": LabelSet("scene", _DENSE),
    "yeast": LabelSet("yeast", _DENSE),
    "references": LabelSet("yahoo_reference_ji", _WORDS),
    "science": LabelSet("yahoo_science_ji", _WORDS),
    **{f"sun09, {labels} labels": LabelSet("sun09", _DENSE, labels=labels, examples=8000) for labels in (20, 40, 60, 80, 100)},
    **{
        f"bibtex, {count} x {labels}": LabelSet("bibtex", _WORDS, labels=labels, examples=count)
        for labels, sizes in STAGES.items()
        for count in sizes.values()
    },
}


def split(data: LabelSet, share: float, seed: int, data_dir: Path | None) -> TaskData:
    """Return a random share of the examples for training, the others held out."""
    total = data.examples or load(data.spec, data_dir=data_dir).design.output_shape[0]
    count = round(share * total)
    return load(data.spec | {"preprocess": data.steps, "examples": count, "held_out": total - count, "seed": seed}, data_dir=data_dir)
