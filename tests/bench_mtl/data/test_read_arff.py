"""The ARFF reader: Mulan's and MEKA's ways to mark labels, dense and sparse rows, and every way a file can be wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reading import dense, refused, written

from bench_mtl.core.errors import InputError
from bench_mtl.data import load, read_arff

HEADER = """\
% a comment
@relation MultiLabelExample

@attribute feature1 numeric
@attribute 'feature two' REAL
@attribute label1 {0, 1}
@attribute label2 {0,1}
"""
ROWS = ["2.3,5.6,0,1", "-1,0,1,1", "1e-3,4,0,0"]
DENSE = HEADER + f"@data\n{ROWS[0]}\n% a comment\n{ROWS[1]}\n\n{ROWS[2]}\n"
SPARSE_ROWS = ["{0 2.3, 1 5.6, 3 1}", "{}", "{0 -1,2 1,3 1}", "{ }"]
SPARSE = HEADER + "@data\n" + "\n".join(SPARSE_ROWS) + "\n"
XML = '<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n<label name="label2"></label>{}</labels>\n'
BOTH = XML.format('<label name="label1"/>')
X = np.array([[2.3, 5.6], [-1, 0], [1e-3, 4]])
Y = np.array([[-1, 1], [1, 1], [-1, -1]])
SPARSE_X, SPARSE_Y = np.array([[2.3, 5.6], [0, 0], [-1, 0], [0, 0]]), np.array([[-1, 1], [-1, -1], [1, 1], [-1, -1]])


def write(folder: Path, content: str | bytes, name: str = "set.arff") -> Path:
    return written(folder / name, content)


def related(option: str, content: str = DENSE) -> str:
    return content.replace("MultiLabelExample", option)


def declared(kind: str, *values: str) -> str:
    """A feature of some kind, a numeric one and a label."""
    rows = "".join(f"{value},{i},{i % 2}\n" for i, value in enumerate(values))
    return f"@relation r\n@attribute a {kind}\n@attribute b numeric\n@attribute c {{0,1}}\n@data\n{rows}"


FIRST = "@relation {}\n@attribute l {{0,1}}\n@attribute x numeric\n@data\n1,5\n0,6\n"
ODD = "\t@RELATION\tr\r\n@ATTRIBUTE\tx\tINTEGER\r\n@Attribute l\u00e9 {0, 1}\r\n@DATA\r\n2.5,1\r\n3, 0\r\n"
NESTED = DENSE.replace("feature1 numeric", "feature1 {0,1}").replace("2.3,", "1,").replace("-1,", "0,").replace("1e-3,", "0,")
#: Content, labels, features, targets.
READ: list[tuple[str | bytes, Any, Any, Any]] = [
    (DENSE, 2, X, Y),
    (SPARSE, 2, SPARSE_X, SPARSE_Y),
    (FIRST.format("r"), -1, [[5], [6]], [[1], [-1]]),
    (FIRST.format("'r: -C 1'"), None, [[5], [6]], [[1], [-1]]),
    (DENSE, ["label2", "label1"], X, Y),  # in the order of the attributes
    (related("'Example: -split-percentage 50 -C -1'"), None, np.column_stack([X, Y[:, 0] == 1]), Y[:, [1]]),
    *((HEADER + "@data\n" + "\n".join(between.join(row.split(",")) for row in ROWS), 2, X, Y) for between in ("\t", "  ", ",\t", "\t,")),
    (SPARSE.replace("0 2.3, 1 5.6", "0\t2.3,\t1\t5.6"), 2, SPARSE_X, SPARSE_Y),
    (HEADER + "@data\n" + "".join(f"{row}, {{0.5}}\n" for row in ROWS), 2, X, Y),
    (HEADER + "@data\n" + "".join(f"{row},{{2}}\n" for row in SPARSE_ROWS), 2, SPARSE_X, SPARSE_Y),
    *((ODD.encode(encoding), ["l\u00e9"], [[2.5], [3]], [[1], [-1]]) for encoding in ("utf-8", "utf-8-sig", "latin-1")),
    # A value that is left out is the first of its declaration.
    (
        "@relation r\n@attribute x {1,0}\n@attribute z {u,v}\n@attribute l {1,0}\n@data\n{}\n{0 0,1 v,2 0}\n",
        1, [[1, 1, 0], [0, 0, 1]], [[1], [-1]],
    ),
    (declared("{1,0}", "0", "1"), 1, [[0, 0], [1, 1]], [[-1], [1]]),
    (declared("{1,-1}", "-1", "1"), 1, [[0, -1], [1, 1]], [[-1], [1]]),
    (
        declared("{red, 'dark green', blue}", "blue", "red", "'dark green'"), 1,
        [[0, 0, 0, 1], [1, 1, 0, 0], [2, 0, 1, 0]], [[-1], [1], [-1]],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("content", "labels", "features", "targets"), READ)
def test_what_a_file_may_hold(tmp_path: Path, content: str | bytes, labels: Any, features: Any, targets: Any) -> None:
    data = read_arff(write(tmp_path, content), labels=labels)
    np.testing.assert_array_equal(dense(data), features)
    np.testing.assert_array_equal(data.targets, targets)
    assert data.design.is_sparse == ("{}" in str(content))
    assert (data.name, data.notes[-1]) == ("set", "Labels 0/1 were read as -1/+1.")
    expanded = "1 nominal feature(s) (a) became 0/1 columns, one for each value, after the other features."
    assert (expanded in data.notes) == ("red" in str(content))


def test_labels_by_xml(tmp_path: Path) -> None:
    path, elsewhere = write(tmp_path, DENSE), write(tmp_path, XML.format(""), "other.xml")
    np.testing.assert_array_equal(read_arff(path, labels=elsewhere).targets, Y[:, [1]])
    np.testing.assert_array_equal(read_arff(path, labels="other.xml").targets, Y[:, [1]])  # beside the ARFF file
    nested = write(tmp_path, XML.format('<label name="label1"><label name="feature1"/></label>'), "b.xml")
    assert read_arff(write(tmp_path, NESTED), labels=nested).n_tasks == 3
    write(tmp_path, BOTH, "scene.xml")
    for name in ("scene.arff", "scene-train.arff", "scene_test.arff", "scene-train-5.arff"):
        np.testing.assert_array_equal(read_arff(write(tmp_path, DENSE, name)).targets, Y)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("{1,0}", "01", [-1, 1]),
        ("{-1,1}", ("-1", "1"), [-1, 1]),
        ("{0.0,1.0}", ("1.0", "0.0"), [1, -1]),
        ("{'0','1'}", "10", [1, -1]),
        ("{FALSE,TRUE}", ("TRUE", "FALSE"), [1, -1]),
        ("{true,\tfalse}", ("true", "false"), [1, -1]),
        ("{no, yes}", ("no", "yes"), [-1, 1]),
        ("numeric", "01", [0, 1]),
        ("integer", ("2.5", "-3"), [2.5, -3]),
    ],
)
def test_kinds_of_labels(tmp_path: Path, kind: str, values: Any, expected: list[float]) -> None:
    rows = "".join(f"1,{value}\n" for value in values)
    data = read_arff(write(tmp_path, f"@relation r\n@attribute x numeric\n@attribute l {kind}\n@data\n{rows}"), labels=1)
    np.testing.assert_array_equal(data.targets[:, 0], expected)


NO_LABELS = "labels must be a number"
#: Content, labels, message.
REFUSED: list[tuple[str | bytes, Any, str]] = [
    ("", 2, "there is no @data line"),
    (HEADER + "@data\n% nothing\n", 2, "has no data row"),
    ("@data\n1,2\n", 2, "not readable as an ARFF file"),
    (DENSE + "1,2,0\n", 2, "Bad @DATA instance format in line 14"),
    (DENSE + "1,2,0,2\n", 2, "Data value 2 not found in nominal declaration"),
    (DENSE + "1,?,0,1\n", 2, r"data row 4 has a missing value \('\?' or NaN\) of attribute 'feature two'"),
    (DENSE + "1,,0,1\n", 2, "data row 4 has a missing value"),
    (DENSE + "1e999,2,0,1\n", 2, "X has inf at index"),
    (SPARSE + "{1 ?}\n", 2, "data row 5 has a missing value .* of attribute 'feature two'"),
    (SPARSE + "1,2,0,1\n", 2, "Invalid layout"),
    (HEADER + f"@data\n{ROWS[0]},{{5}}\n{ROWS[1]}\n", 2, "different weights, from 1 to 5"),
    (HEADER + f"@data\n{ROWS[0]},{{a}}\n", 2, "not readable as"),
    (DENSE.replace("@relation", "@relations"), 2, "line 2 is neither a relation nor an attribute: '@relations Multi"),
    (DENSE.replace("@attribute feature1", "@atribute feature1"), 2, "line 4 is neither a relation nor an attribute"),
    (DENSE.replace("REAL", "string"), 2, "attribute 'feature two' is a string: only numeric and nominal"),
    (DENSE.replace("REAL", "date 'yyyy-MM-dd'"), 2, "Bad @ATTRIBUTE type"),
    (DENSE.replace("{0,1}", "{0,1"), 2, "line 7, attribute label2: not a list of values"),
    (DENSE.replace("{0,1}", "{" + "a," * 60 + "b c}"), 2, "attribute label2: not a list of values"),
    (DENSE.replace("{0,1}", "{" + ",".join(f"a{i}" for i in range(3000)) + " }"), 2, "Data value 1 not found"),
    (DENSE.replace("{0,1}", "{0,1,2}"), 2, "label 'label2' has the values 0, 1, 2: only 0/1, FALSE/TRUE"),
    (DENSE.replace("{0,1}", "numeric"), 2, "labels mix the nominal 'label1' with the numeric 'label2'"),
    (DENSE, None, "which attributes are labels"),
    # An option inside a word is none.
    *(
        (related(name), None, "which attributes are labels")
        for name in ("'music-C 2'", "'weka.filters.Remove-C 1-V'", "'a disc.-C 2'", "'x--C 2'")
    ),
    (related("'r: -C 4'"), None, "does not fit 4 attributes"),
    (DENSE, 4, "labels = 4 does not fit 4 attributes: at least one label and one feature are needed"),
    *((DENSE, labels, NO_LABELS) for labels in (True, 1.0, [], [1, 2], "label1")),
    (DENSE, ["label1", "label1"], "labels names an attribute twice"),
    (DENSE, ["lable1"], "label 'lable1' is not among the 4 attributes: did you mean 'label1'"),
    (DENSE, ["feature1", "feature two", "label1", "label2"], "labels names every attribute"),
    (DENSE, "absent.xml", r"absent\.xml: no such file"),
]


@pytest.mark.parametrize(("content", "labels", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(tmp_path: Path, content: str | bytes, labels: Any, message: str) -> None:
    path = write(tmp_path, content)
    with refused(message) as error:
        read_arff(path, labels=labels)
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not readable as a Mulan XML file"),
        ("<labels><label name='label1'>", "not readable as a Mulan XML file"),
        ("<labels/>", "not a Mulan XML file"),
        ("<labels><label/></labels>", "not a Mulan XML file"),
        ("<labels><label name='nothing'/></labels>", "label 'nothing' is not among"),
    ],
)
def test_unusable_xml(tmp_path: Path, content: str | bytes, message: str) -> None:
    write(tmp_path, content, "set.xml")
    with refused(message):
        read_arff(write(tmp_path, DENSE))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), base=st.sampled_from([DENSE, SPARSE]))
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, data: st.DataObject, base: str) -> None:
    content = bytearray(base.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.one_of(st.integers(0, 255), st.sampled_from(b"{},%'\"\\ \n?-")))
    message = ""
    try:
        read_arff(write(tmp_path, bytes(content)), labels=2)
    except InputError as error:
        message = str(error)
    assert "\n" not in message


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), n=st.integers(1, 6), d=st.integers(1, 5), sparse=st.booleans())
def test_written_numbers_are_read_back(tmp_path: Path, data: st.DataObject, n: int, d: int, sparse: bool) -> None:
    numbers = st.one_of(st.just(0.0), st.floats(allow_nan=False, allow_infinity=False))
    table = np.array(data.draw(st.lists(st.lists(numbers, min_size=d + 1, max_size=d + 1), min_size=n, max_size=n)))
    header = "@relation r\n" + "".join(f"@attribute a{j} numeric\n" for j in range(d + 1)) + "@data\n"
    if sparse:
        rows = ["{" + ",".join(f"{j} {float(row[j])!r}" for j in np.flatnonzero(row)) + "}" for row in table]
    else:
        rows = [",".join(repr(float(value)) for value in row) for row in table]
    read = read_arff(write(tmp_path, header + "\n".join(rows) + "\n"), labels=1)
    np.testing.assert_array_equal(dense(read), table[:, :d])
    np.testing.assert_array_equal(read.targets, table[:, d:])


def test_a_packed_file_finds_its_labels(tmp_path: Path) -> None:
    text = "@relation x\n@attribute a numeric\n@attribute b {0,1}\n@data\n1,0\n2,1\n"
    write(tmp_path, '<labels><label name="b"/></labels>', "set-train.xml")
    assert load({"file": str(write(tmp_path, text, "set-train.arff.gz"))}).targets.tolist() == [[-1.0], [1.0]]
