"""The label sets of Chen, Liu, Ye (TKDD 2012, table I), and what is in the place of those that could not be had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_mtl.data import TaskData, load


@dataclass(frozen=True)
class LabelSet:
    """A data set with many labels."""

    name: str  # name of the file
    steps: tuple[str, ...]  # preprocessing of normalised features; its statistics are those of the training examples
    raw_steps: tuple[str, ...] = ()  # preprocessing of raw features
    labels: int | None = None  # how many, the most frequent ones; None: all
    examples: int | None = None  # how many, drawn at random for each repetition; None: all
    draw: int = 0
    """Sets with another number are drawn and split apart: two that round to as many training examples would have the same ones."""

    @property
    def spec(self) -> dict[str, Any]:
        """The whole file, as `bench_mtl.data.load` takes it."""
        return {"name": self.name} | ({} if self.labels is None else {"labels": self.labels})


#: "All of the benchmark data sets are normalized", the paper says, and for the web pages refers to work that has these two steps.
#: But Scene's features are between 0 and 1 and Yeast's rows have length 1 as they come; so raw features are allowed too.
_DENSE, _WORDS, _COUNTS = ("standardise", "unit_rows"), ("tfidf", "unit_rows"), ("unit_rows",)

#: Of the seeds of sets with one number of a draw and the next; no experiment has as many repetitions.
_SEEDS = 1000

#: Examples of each stage range in tables VII and VIII, with its 10 and its 20 most frequent terms.
STAGES: Mapping[int, Mapping[str, int]] = {
    10: {"4-6": 925, "7-8": 797, "9-10": 919, "11-12": 1622, "13-16": 2228},
    20: {"4-6": 1023, "7-8": 827, "9-10": 1015, "11-12": 1940, "13-16": 2476},
}

SETS: Mapping[str, LabelSet] = {
    "scene": LabelSet("scene", _DENSE),
    "yeast": LabelSet("yeast", _DENSE),
    "references": LabelSet("yahoo_reference_ji", _WORDS, _COUNTS),
    "science": LabelSet("yahoo_science_ji", _WORDS, _COUNTS),
    **{f"sun09, {labels} labels": LabelSet("sun09", _DENSE, labels=labels, examples=8000) for labels in (20, 40, 60, 80, 100)},
    **{
        f"bibtex, {count} x {labels}": LabelSet("bibtex", _WORDS, _COUNTS, labels=labels, examples=count, draw=draw)
        for labels, sizes in STAGES.items()
        for draw, count in enumerate(sizes.values())
    },
}


def split(data: LabelSet, share: float, seed: int, data_dir: Path | None, features: str = "normalised") -> TaskData:
    """Return a random share of the examples for training, the others held out, with `normalised` or `raw` features."""
    total = data.examples or load(data.spec, data_dir=data_dir).design.output_shape[0]
    count = round(share * total)
    steps = data.steps if features == "normalised" else data.raw_steps
    drawn = {"preprocess": steps, "examples": count, "held_out": total - count, "seed": seed + _SEEDS * data.draw}
    return load(data.spec | drawn, data_dir=data_dir)
