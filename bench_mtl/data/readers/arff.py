"""Reader of dense and sparse multi-label ARFF files, as Mulan and MEKA write them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.errors import InputError, did_you_mean
from bench_mtl.core.files import is_file
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.readers.common import naming, opened, parsing, readable_file, unpacked_name
from bench_mtl.data.selection import Selection
from bench_mtl.data.table import Table
from bench_mtl.model.task_data import TaskData

_KIND = "an ARFF file"
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_VALUE = rf"""(?:{_QUOTED}|[^\s,"'{{}}]+)"""
_NOMINAL = re.compile(rf"\{{\s*{_VALUE}(?:\s*,\s*{_VALUE})*\s*\}}")
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s\"']\S*)\s+(.+)", re.IGNORECASE)
_RELATION = re.compile(r"@relation\s+(.+)", re.IGNORECASE)
_MEKA_LABELS = re.compile(r"(?<![\w.-])-C\s+(-?\d+)(?![\w.])", re.IGNORECASE)
#: The weight that a row may end in.
_WEIGHT = re.compile(r"\s*,\s*\{\s*(\d*\.?\d+(?:[eE][-+]?\d+)?)\s*\}$")
_BINARY = ({0.0, 1.0}, {-1.0, 1.0})
#: Words for the labels 0 and 1.
_WORDS = {"false": 0.0, "true": 1.0, "no": 0.0, "yes": 1.0, "f": 0.0, "t": 1.0, "n": 0.0, "y": 1.0, "off": 0.0, "on": 1.0}


class _Attribute(NamedTuple):
    name: str
    values: tuple[str, ...] | None
    """Values of a nominal attribute; None for numbers."""

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The values of a binary nominal attribute (0/1 or -1/+1, in the order of its declaration), else None."""
        try:
            numbers = tuple(float(value) for value in self.values or ())
        except ValueError:
            return None
        return numbers if set(numbers) in _BINARY else None

    @property
    def label_numbers(self) -> tuple[float, ...] | None:
        """The same of a label, whose values may be two words such as FALSE and TRUE."""
        words = tuple(_WORDS.get(value.lower(), -1.0) for value in self.values or ())
        return words if len(words) == 2 and set(words) == {0.0, 1.0} else self.numbers


def read_arff(
    path: str | Path, *, labels: int | str | Path | Sequence[str] | None = None, most_frequent: int | None = None,
    classes: str | None = None, examples: int | None = None, held_out: int = 0, seed: int = 0,
) -> TaskData:  # fmt: skip
    """Tasks from an ARFF file: some attributes are the labels or targets, the others are the features.

    Nominal labels with the values 0/1, FALSE/TRUE, no/yes or -1/+1 become -1/+1; numeric ones stay real targets. Nominal features with the
    values 0/1 (or -1/+1) become those numbers; other nominal features become one 0/1 column for each of their values,
    after all other columns (`notes` say so). A file with sparse rows gives a CSR design. Tasks and features are in the
    order of the attributes.

    Parameters
    ----------
    path : the file; what ends in .arff.gz, .arff.bz2 or .arff.xz is unpacked.
    labels : which attributes are the labels: a number n for the last n (the first \\|n\\| when negative), the path of a
        Mulan XML file (as given, or beside the ARFF file), or a list of names. None finds the Mulan XML file of the same
        name beside the ARFF file (also without its ``-train`` or ``-test``), else reads ``-C n`` in MEKA's relation
        name, where n > 0 means the first n and n < 0 the last \\|n\\|.
    most_frequent : the number of labels to keep, those most frequent in the file; ties go to the earlier one.
    classes, examples, held_out, seed : as for `read_npz`; `held_out` is a number.

    Raises
    ------
    InputError : anything but such a file, missing values (the first place is named), string or date attributes, labels
        that are neither binary nor numeric, unknown or too many labels, weights of examples that are not all the same.

    Notes
    -----
    G. Tsoumakas et al., "Mulan: a Java library for multi-label learning", JMLR 12, 2011; J. Read et al., "MEKA: a
    multi-label/multi-target extension to WEKA", JMLR 17, 2016.
    """
    selection = Selection.among_columns(most_frequent, classes, examples, held_out, seed)
    source = readable_file(path)
    with naming(source):
        relation, attributes, values = _parse(source)
        chosen = _label_columns(labels, source, relation, [attribute.name for attribute in attributes])
        others = [j for j in range(len(attributes)) if j not in set(chosen)]
        Y, label_notes = _label_matrix(attributes, values, chosen)
        X, feature_notes = _feature_matrix(attributes, values, others)
        are_labels = attributes[chosen[0]].values is not None
        table = Table(X.shape[0], X.shape[1], Y.shape[1], lambda: iter([(X, Y)]), are_labels, notes=(*feature_notes, *label_notes))
        return selection.of(table, unpacked_name(source).stem)


def _parse(source: Path) -> tuple[str, list[_Attribute], Matrix]:
    """Relation name, attributes and an n x (number of attributes) table, where nominal entries are value numbers."""
    import arff

    with parsing(_KIND), opened(source) as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:  # as older Weka files are
        text = content.decode("latin-1")
    lines = text.replace("\r\n", "\n").split("\n")
    start = next((i for i, line in enumerate(lines) if line.strip().lower().startswith("@data")), None)
    if start is None:
        raise InputError(f"not readable as {_KIND}: there is no @data line")
    body = [line.strip() for line in lines[start + 1 :]]
    rows = [row for row in body if row and not row.startswith("%")]
    if not rows:
        raise InputError("has no data row")
    weights = {float(match[1]) if (match := _WEIGHT.search(row)) else 1.0 for row in rows}
    if len(weights) > 1:
        raise InputError(f"its examples have different weights, from {min(weights):g} to {max(weights):g}, and all count alike here")
    lines[:start] = [_plain_header(line, i + 1) for i, line in enumerate(lines[:start])]
    lines[start + 1 :] = map(_plain_row, body)
    is_sparse = rows[0].startswith("{")
    with parsing(_KIND):
        document = arff.loads("\n".join(lines), encode_nominal=True, return_type=arff.COO if is_sparse else arff.DENSE)
    attributes = []
    for name, kind in document["attributes"]:
        if kind == "STRING":
            raise InputError(f"attribute '{name}' is a string: only numeric and nominal attributes can be used")
        attributes.append(_Attribute(name, None if isinstance(kind, str) else tuple(str(value) for value in kind)))
    shape = (len(rows), len(attributes))
    with parsing(_KIND):  # a missing value is None, which becomes NaN
        if is_sparse:
            values, row_numbers, columns = document["data"]
            table: Matrix = sp.csr_array((np.array(values, dtype=np.float64), (row_numbers, columns)), shape=shape)
            stored = table.tocoo()
            places = np.column_stack([stored.row, stored.col])[np.isnan(stored.data)]
        else:
            table = np.array(document["data"], dtype=np.float64).reshape(shape)
            places = np.argwhere(np.isnan(table))
    if len(places):
        row, column = places[0]
        raise InputError(f"data row {row + 1} has a missing value ('?' or NaN) of attribute '{attributes[column].name}'")
    return str(document["relation"]), attributes, table


def _plain_header(line: str, number: int) -> str:
    """Return a header line in the form that the parser takes well.

    It splits keywords from names at a space only (not at a tab), cuts the fraction off entries of type integer, and
    needs exponential time for some malformed lists of values; so tabs become spaces, integer becomes numeric, and lists
    of values are checked here first.
    """
    text = line.strip()
    relation = _RELATION.fullmatch(text)
    if relation:
        return f"@relation {relation[1]}"
    attribute = _ATTRIBUTE.fullmatch(text)
    if not attribute:
        if text and not text.startswith("%"):  # the parser would pass over it
            raise InputError(f"not readable as {_KIND}: line {number} is neither a relation nor an attribute: {text[:80]!r}")
        return text
    name, kind = attribute[1], attribute[2].replace("\t", " ")
    if kind.startswith("{") and not _NOMINAL.fullmatch(kind):
        raise InputError(f"not readable as {_KIND}: line {number}, attribute {name}: not a list of values: {kind[:80]!r}")
    return f"@attribute {name} {'numeric' if kind.lower() == 'integer' else kind}"


def _plain_row(row: str) -> str:
    """Return a data row in the form that the parser takes: without a weight, and with commas where Weka takes tabs and spaces as well."""
    if row.startswith("%"):
        return row
    row = _WEIGHT.sub("", row)
    return row if row.startswith("{") or set(row) & set(",'\"") else re.sub(r"\s+", ",", row)


def _label_columns(labels: object, source: Path, relation: str, names: list[str]) -> list[int]:
    """Return positions of the label attributes, ascending."""
    file = label_file(source, labels)
    if file is not None:
        labels = _xml_labels(file)
    elif labels is None:
        option = _MEKA_LABELS.search(relation)
        if option is None:
            raise InputError("which attributes are labels? give labels = a number, a Mulan XML file or a list of names")
        labels = -int(option[1])
    if isinstance(labels, (int, np.integer)) and not isinstance(labels, bool):
        count = abs(int(labels))
        if not 0 < count < len(names):
            raise InputError(f"labels = {labels} does not fit {len(names)} attributes: at least one label and one feature are needed")
        return list(range(len(names) - count, len(names)) if labels > 0 else range(count))
    if (
        isinstance(labels, (str, Path))
        or not isinstance(labels, Sequence)
        or not labels
        or not all(isinstance(name, str) for name in labels)
    ):
        raise InputError("labels", labels, "a number, a Mulan XML file or a list of attribute names")
    position = {name: j for j, name in enumerate(names)}
    for name in labels:
        if name not in position:
            raise InputError(f"label '{name}' is not among the {len(names)} attributes{did_you_mean(name, names)}")
    if len(set(labels)) < len(labels):
        raise InputError("labels names an attribute twice")
    if len(labels) == len(names):
        raise InputError("labels names every attribute: at least one feature is needed")
    return sorted(position[name] for name in labels)


def label_file(source: Path, labels: object) -> Path | None:
    """Return the Mulan XML file that names the labels of a file: the one that is given, or that belongs to it; None where there is none."""
    if labels is None:
        stem = unpacked_name(source).stem
        stems = (stem, re.sub(r"[-_](train|test)\b.*$", "", stem, flags=re.IGNORECASE))
        return next((file for stem in stems if (file := source.with_name(f"{stem}.xml")).is_file()), None)
    if not isinstance(labels, (str, Path)) or Path(labels).suffix.lower() != ".xml":
        return None
    path, beside = Path(labels), source.parent / labels
    return readable_file(beside if not is_file("labels", path) and is_file("labels", beside) else path)


def _xml_labels(file: Path) -> list[str]:
    with naming(file):
        with parsing("a Mulan XML file"):
            elements = ElementTree.parse(file).iter()
            names = [element.get("name") for element in elements if element.tag.rpartition("}")[2] == "label"]
        found = [name for name in names if name]
        if not found or len(found) < len(names):
            raise InputError("not a Mulan XML file: it needs elements <label name=...>")
        return found


def _label_matrix(attributes: list[_Attribute], table: Matrix, chosen: list[int]) -> tuple[Array, tuple[str, ...]]:
    nominal = [j for j in chosen if attributes[j].values is not None]
    Y = _columns(table, chosen)
    if not nominal:
        return Y, ()
    if len(nominal) < len(chosen):
        numeric = next(j for j in chosen if attributes[j].values is None)
        raise InputError(f"labels mix the nominal '{attributes[nominal[0]].name}' with the numeric '{attributes[numeric].name}'")
    converted = False
    for column, j in enumerate(chosen):
        numbers, values = attributes[j].label_numbers, attributes[j].values or ()
        if numbers is None:
            shown = ", ".join(values[:5]) + (", ..." if len(values) > 5 else "")
            raise InputError(f"label '{attributes[j].name}' has the values {shown}: only 0/1, FALSE/TRUE, no/yes or -1/+1 are allowed")
        converted |= 0.0 in numbers
        Y[:, column] = np.where(np.array(numbers)[Y[:, column].astype(int)] == 1.0, 1.0, -1.0)
    return Y, ("Labels 0/1 were read as -1/+1.",) if converted else ()


def _feature_matrix(attributes: list[_Attribute], table: Matrix, others: list[int]) -> tuple[Matrix, tuple[str, ...]]:
    """Return numbers as they are; nominal attributes whose value numbers are not their values already, as extra columns."""
    plain = [j for j in others if attributes[j].values is None or attributes[j].numbers == (0.0, 1.0)]
    extra, expanded = [], []
    for j in sorted(set(others) - set(plain)):
        attribute = attributes[j]
        codes = _columns(table, [j])[:, 0].astype(int)
        if attribute.numbers is not None:
            extra.append(np.array(attribute.numbers)[codes][:, None])
        else:
            extra.append((codes[:, None] == np.arange(len(attribute.values or ()))).astype(np.float64))
            expanded.append(attribute.name)
    first = table[:, plain]
    if isinstance(first, sp.csr_array):
        X: Matrix = sp.csr_array(sp.hstack([first, *map(sp.csr_array, extra)], format="csr"))
    else:
        X = np.hstack([first, *extra])
    if not expanded:
        return X, ()
    names = ", ".join(expanded[:5]) + (", ..." if len(expanded) > 5 else "")
    return X, (f"{len(expanded)} nominal feature(s) ({names}) became 0/1 columns, one for each value, after the other features.",)


def _columns(table: Matrix, columns: list[int]) -> Array:
    chosen = table[:, columns]
    return np.array(chosen.toarray() if isinstance(chosen, sp.csr_array) else chosen)
