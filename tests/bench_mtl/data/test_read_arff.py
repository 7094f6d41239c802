"""The ARFF reader: Mulan's and MEKA's ways to mark labels, dense and sparse rows, and every way a file can be wrong."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
DENSE = HEADER + "@data\n2.3,5.6,0,1\n% a comment\n-1,0,1,1\n\n1e-3,4,0,0\n"
SPARSE = HEADER + "@data\n{0 2.3, 1 5.6, 3 1}\n{}\n{0 -1,2 1,3 1}\n{ }\n"
XML = '<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n<label name="label2"></label>{}</labels>\n'
BOTH = XML.format('<label name="label1"><label name="feature1"/></label>')
X = np.array([[2.3, 5.6], [-1, 0], [1e-3, 4]])
Y = np.array([[-1, 1], [1, 1], [-1, -1]])


def write(folder: Path, content: str | bytes, name: str = "set.arff") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def with_attribute(declaration: str, *values: str) -> str:
    """A file with one more feature, a numeric one and a label."""
    rows = "".join(f"{value},{i},{i % 2}\n" for i, value in enumerate(values))
    return f"@relation r\n@attribute a {declaration}\n@attribute b numeric\n@attribute c {{0,1}}\n@data\n{rows}"


def test_dense_rows(tmp_path: Path) -> None:
    data = read_arff(write(tmp_path, DENSE), labels=2)
    assert not data.design.is_sparse
    np.testing.assert_array_equal(data.task(0)[0], X)
    np.testing.assert_array_equal(data.targets, Y)
    assert data.notes == ("Labels 0/1 were read as -1/+1.",)
    assert data.name == "set"


def test_sparse_rows(tmp_path: Path) -> None:
    data = read_arff(write(tmp_path, SPARSE), labels=2)
    assert data.design.is_sparse
    np.testing.assert_array_equal(data.task(0)[0].toarray(), [[2.3, 5.6], [0, 0], [-1, 0], [0, 0]])
    np.testing.assert_array_equal(data.targets, [[-1, 1], [-1, -1], [1, 1], [-1, -1]])


def test_first_attributes_as_labels(tmp_path: Path) -> None:
    content = "@relation r\n@attribute l {0,1}\n@attribute x numeric\n@data\n1,5\n0,6\n"
    data = read_arff(write(tmp_path, content), labels=-1)
    np.testing.assert_array_equal(data.targets, [[1], [-1]])
    np.testing.assert_array_equal(data.task(0)[0], [[5], [6]])


def test_labels_by_name_are_in_the_order_of_the_attributes(tmp_path: Path) -> None:
    data = read_arff(write(tmp_path, DENSE), labels=["label2", "label1"])
    np.testing.assert_array_equal(data.targets, Y)


def test_labels_by_xml(tmp_path: Path) -> None:
    path = write(tmp_path, DENSE)
    elsewhere = write(tmp_path, XML.format(""), "other.xml")
    np.testing.assert_array_equal(read_arff(path, labels=elsewhere).targets, Y[:, [1]])
    np.testing.assert_array_equal(read_arff(path, labels="other.xml").targets, Y[:, [1]])  # beside the ARFF file


@pytest.mark.parametrize("name", ["scene.arff", "scene-train.arff", "scene_test.arff", "scene-train-5.arff"])
def test_xml_is_found_beside_the_file(tmp_path: Path, name: str) -> None:
    write(tmp_path, XML.format('<label name="label1"/>'), "scene.xml")
    np.testing.assert_array_equal(read_arff(write(tmp_path, DENSE, name)).targets, Y)


def test_nested_labels_of_a_hierarchy_count(tmp_path: Path) -> None:
    content = DENSE.replace("feature1 numeric", "feature1 {0,1}").replace("2.3,", "1,").replace("-1,", "0,").replace("1e-3,", "0,")
    assert read_arff(write(tmp_path, content), labels=write(tmp_path, BOTH, "b.xml")).n_tasks == 3


@pytest.mark.parametrize(("option", "expected"), [("-C -2", Y), ("-split-percentage 50 -C -1", Y[:, [1]])])
def test_mekas_option_in_the_relation_name(tmp_path: Path, option: str, expected: Any) -> None:
    content = DENSE.replace("MultiLabelExample", f"'Example: {option}'")
    np.testing.assert_array_equal(read_arff(write(tmp_path, content)).targets, expected)


@pytest.mark.parametrize("relation", ["music-C 2", "weka.filters.Remove-C 1-V", "'a disc.-C 2'", "x--C 2"])
def test_an_option_inside_a_word_is_none(tmp_path: Path, relation: str) -> None:
    name = relation if " " not in relation or relation.startswith("'") else f"'{relation}'"
    with pytest.raises(InputError, match="which attributes are labels"):
        read_arff(write(tmp_path, DENSE.replace("MultiLabelExample", name)))


def test_weights_of_examples_are_the_same_or_refused(tmp_path: Path) -> None:
    for content, other in (
        (DENSE, ["2.3,5.6,0,1", "-1,0,1,1", "1e-3,4,0,0"]),
        (SPARSE, ["{0 2.3, 1 5.6, 3 1}", "{}", "{0 -1,2 1,3 1}", "{ }"]),
    ):
        expected, weighted = read_arff(write(tmp_path, content), labels=2), content.partition("@data\n")[0] + "@data\n"
        data = read_arff(write(tmp_path, weighted + "".join(f"{row}, {{0.5}}\n" for row in other)), labels=2)
        np.testing.assert_array_equal(data.targets, expected.targets)
        for rows, message in (
            (f"{other[0]},{{5}}\n{other[1]}\n", "different weights, from 1 to 5"),
            (f"{other[0]},{{a}}\n", "not readable as"),
        ):
            with pytest.raises(InputError, match=message):
                read_arff(write(tmp_path, weighted + rows), labels=2)


@pytest.mark.parametrize("between", ["\t", "  ", ",\t", "\t,"])
def test_values_may_be_separated_by_tabs_and_spaces(tmp_path: Path, between: str) -> None:
    content = (
        HEADER
        + "@data\n"
        + "\n".join(between.join(row) for row in (("2.3", "5.6", "0", "1"), ("-1", "0", "1", "1"), ("1e-3", "4", "0", "0")))
    )
    np.testing.assert_array_equal(read_arff(write(tmp_path, content), labels=2).task(0)[0], X)
    sparse = SPARSE.replace("0 2.3, 1 5.6", "0\t2.3,\t1\t5.6")
    np.testing.assert_array_equal(read_arff(write(tmp_path, sparse), labels=2).task(0)[0].toarray()[0], X[0])


def test_packed_files(tmp_path: Path) -> None:
    data = load({"file": str(write(tmp_path, gzip.compress(DENSE.encode()), "set.arff.gz")), "labels": 2})
    np.testing.assert_array_equal(data.targets, Y)
    assert data.name == "set"


def test_mekas_positive_option_means_the_first(tmp_path: Path) -> None:
    content = "@relation 'r: -C 1'\n@attribute l {0,1}\n@attribute x numeric\n@data\n1,5\n0,6\n"
    np.testing.assert_array_equal(read_arff(write(tmp_path, content)).targets, [[1], [-1]])


@pytest.mark.parametrize(
    ("declared", "values", "expected"),
    [
        ("{0,1}", "01", [-1, 1]),
        ("{1,0}", "01", [-1, 1]),
        ("{-1,1}", ("-1", "1"), [-1, 1]),
        ("{+1,-1}", ("-1", "+1"), [-1, 1]),
        ("{0.0,1.0}", ("1.0", "0.0"), [1, -1]),
        ("{'0','1'}", "10", [1, -1]),
        ("{FALSE,TRUE}", ("TRUE", "FALSE"), [1, -1]),
        ("{true,\tfalse}", ("true", "false"), [1, -1]),
        ("{no, yes}", ("no", "yes"), [-1, 1]),
        ("numeric", "01", [0, 1]),
        ("real", ("2.5", "-3"), [2.5, -3]),
        ("integer", ("2.5", "-3"), [2.5, -3]),
    ],
)
def test_kinds_of_labels(tmp_path: Path, declared: str, values: Any, expected: list[float]) -> None:
    rows = "".join(f"1,{value}\n" for value in values)
    data = read_arff(write(tmp_path, f"@relation r\n@attribute x numeric\n@attribute l {declared}\n@data\n{rows}"), labels=1)
    np.testing.assert_array_equal(data.targets[:, 0], expected)


def test_left_out_sparse_value_is_the_first_of_its_declaration(tmp_path: Path) -> None:
    content = "@relation r\n@attribute x {1,0}\n@attribute z {u,v}\n@attribute l {1,0}\n@data\n{}\n{0 0,1 v,2 0}\n"
    data = read_arff(write(tmp_path, content), labels=1)
    np.testing.assert_array_equal(data.targets, [[1], [-1]])
    np.testing.assert_array_equal(data.task(0)[0].toarray(), [[1, 1, 0], [0, 0, 1]])


def test_binary_nominal_features_become_numbers(tmp_path: Path) -> None:
    for declared, values, expected in (("{0,1}", "01", [0, 1]), ("{1,0}", "01", [0, 1]), ("{1,-1}", ("-1", "1"), [-1, 1])):
        data = read_arff(write(tmp_path, with_attribute(declared, *values)), labels=1)
        np.testing.assert_array_equal(np.sort(data.task(0)[0], axis=1), np.sort(np.column_stack([expected, [0, 1]]), axis=1))
        assert data.n_features == 2
        assert data.notes == ("Labels 0/1 were read as -1/+1.",)


def test_other_nominal_features_become_indicators_at_the_end(tmp_path: Path) -> None:
    data = read_arff(write(tmp_path, with_attribute("{red, 'dark green', blue}", "blue", "red", "'dark green'")), labels=1)
    np.testing.assert_array_equal(data.task(0)[0], [[0, 0, 0, 1], [1, 1, 0, 0], [2, 0, 1, 0]])
    assert "1 nominal feature(s) (a) became 0/1 columns, one for each value, after the other features." in data.notes


def test_tabs_crlf_case_and_latin1_are_understood(tmp_path: Path) -> None:
    content = "\t@RELATION\tr\r\n@ATTRIBUTE\tx\tINTEGER\r\n@Attribute l\u00e9 {0, 1}\r\n@DATA\r\n2.5,1\r\n3, 0\r\n"
    for encoding in ("utf-8", "utf-8-sig", "latin-1"):
        data = read_arff(write(tmp_path, content.encode(encoding)), labels=["l\u00e9"])
        np.testing.assert_array_equal(data.task(0)[0], [[2.5], [3]])
        np.testing.assert_array_equal(data.targets, [[1], [-1]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "there is no @data line"),
        ("some text\nand more\n", "there is no @data line"),
        (bytes(range(256)) * 10, "there is no @data line"),
        (HEADER, "there is no @data line"),
        (HEADER + "@data\n% nothing\n", "has no data row"),
        ("@data\n1,2\n", "not readable as an ARFF file"),
        ("@relation r\n@data\n1,2\n", "not readable as an ARFF file"),
        (DENSE + "1,2,0\n", "Bad @DATA instance format in line 14"),
        (DENSE + "1,2,0,1,1\n", "Bad @DATA instance format"),
        (DENSE + "1,2,0,100%\n", "not readable as an ARFF file"),
        (DENSE + "100%,2,0\n", "not readable as an ARFF file"),
        (DENSE + "1,x,0,1\n", "Invalid numerical value"),
        (DENSE + "1,2,0,2\n", "Data value 2 not found in nominal declaration"),
        (DENSE + "1,?,0,1\n", r"data row 4 has a missing value \('\?' or NaN\) of attribute 'feature two'"),
        (DENSE + "1,2,0,?\n", "data row 4 has a missing value .* of attribute 'label2'"),
        (DENSE + "nan,2,0,1\n", "data row 4 has a missing value"),
        (DENSE + "1,,0,1\n", "data row 4 has a missing value"),
        (DENSE + "1e999,2,0,1\n", "X has inf at index"),
        (DENSE + "1,'2,0,1\n", "not readable as an ARFF file"),
        (SPARSE + "{1 ?}\n", "data row 5 has a missing value .* of attribute 'feature two'"),
        (SPARSE + "{7 1}\n", "Bad @DATA instance format"),
        (SPARSE + "{-1 1}\n", "Invalid layout"),
        (SPARSE + "{1 x}\n", "Invalid numerical value"),
        (SPARSE + "{1 1\n", "Invalid layout"),
        (SPARSE + "1,2,0,1\n", "Invalid layout"),
        (DENSE.replace("@relation", "@relations"), "line 2 is neither a relation nor an attribute: '@relations Multi"),
        (DENSE.replace("@attribute feature1", "@atribute feature1"), "line 4 is neither a relation nor an attribute"),
        (DENSE.replace("label2", "label1"), "Bad @ATTRIBUTE name label1"),
        (DENSE.replace("REAL", "complex"), "Bad @ATTRIBUTE type"),
        (DENSE.replace("REAL", "string"), "attribute 'feature two' is a string: only numeric and nominal"),
        (DENSE.replace("REAL", "date 'yyyy-MM-dd'"), "Bad @ATTRIBUTE type"),
        (DENSE.replace(" REAL", ""), "line 5 is neither a relation nor an attribute"),
        (DENSE.replace("{0,1}", "{0,1"), "line 7, attribute label2: not a list of values"),
        (DENSE.replace("{0,1}", "{" + "a," * 60 + "b c}"), "attribute label2: not a list of values"),
        (DENSE.replace("{0,1}", "{" + ",".join(f"a{i}" for i in range(3000)) + " }"), "Data value 1 not found"),
        (DENSE.replace("{0,1}", "{0,1,2}"), "label 'label2' has the values 0, 1, 2: only 0/1, FALSE/TRUE"),
        (DENSE.replace("{0,1}", "numeric"), "labels mix the nominal 'label1' with the numeric 'label2'"),
    ],
)
def test_unusable_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InputError, match=message) as error:
        read_arff(path, labels=2)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "which attributes are labels"),
        (0, "labels = 0 does not fit 4 attributes"),
        (4, "labels = 4 does not fit 4 attributes: at least one label and one feature are needed"),
        (-9, "labels = -9 does not fit"),
        (True, "labels must be a number"),
        (1.0, "labels must be a number"),
        ([], "labels must be a number"),
        ([1, 2], "labels must be a number"),
        ("label1", "labels must be a number"),
        (["label1", "label1"], "labels names an attribute twice"),
        (["lable1"], "label 'lable1' is not among the 4 attributes: did you mean 'label1'"),
        (["feature1", "feature two", "label1", "label2"], "labels names every attribute"),
        ("absent.xml", r"absent\.xml: no such file"),
    ],
)
def test_unusable_labels(tmp_path: Path, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_arff(write(tmp_path, DENSE), labels=labels)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not readable as a Mulan XML file"),
        ("<labels><label name='label1'>", "not readable as a Mulan XML file"),
        ("no xml", "not readable as a Mulan XML file"),
        (b"\xff\xfe\x00", "not readable as a Mulan XML file"),
        ("<labels/>", "not a Mulan XML file"),
        ("<labels><label/></labels>", "not a Mulan XML file"),
        ("<labels><label name='nothing'/></labels>", "label 'nothing' is not among"),
    ],
)
def test_unusable_xml(tmp_path: Path, content: str | bytes, message: str) -> None:
    write(tmp_path, content, "set.xml")
    with pytest.raises(InputError, match=message) as error:
        read_arff(write(tmp_path, DENSE))
    assert "\n" not in str(error.value)


def test_mekas_option_that_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not fit 4 attributes"):
        read_arff(write(tmp_path, DENSE.replace("MultiLabelExample", "'r: -C 4'")))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    X = read.task(0)[0]
    np.testing.assert_array_equal(X.toarray() if sparse else X, table[:, :d])
    np.testing.assert_array_equal(read.targets, table[:, d:])
