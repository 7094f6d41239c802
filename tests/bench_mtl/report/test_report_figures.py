"""What all figures share: looks, sheets, axes, files."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from matplotlib.lines import Line2D

from bench_mtl.report.figures import style


def test_ninety_lines_look_different():
    styles = style.styles_in_turn(f"line {i}" for i in range(90))
    assert len(set(styles.values())) == 90


def test_lines_of_one_colour_have_other_dashes():
    styles = style.styles_in_turn(f"line {i}" for i in range(27))
    for i in range(9):
        alike = [styles[f"line {i + 9 * turn}"] for turn in range(3)]
        assert len({look.colour for look in alike}) == 1
        assert len({str(look.dash) for look in alike}) == 3


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1e-3, 1e3, [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1e3]),
        (1e-9, 2.0, [1e-8, 1e-6, 1e-4, 1e-2, 1.0]),
        (0.9, 40.0, [1.0, 3.0, 10.0, 30.0]),
        (1.5, 7.0, [2.0, 5.0]),
    ],
)
def test_ticks_are_round_and_few(low, high, expected):
    found = style.log_ticks(low, high, 7)
    assert set(expected) <= {float(f"{place:.6g}") for place in found}
    assert len(found) <= 8


@pytest.mark.parametrize("low", np.geomspace(1e-12, 1e6, 40))
@pytest.mark.parametrize("span", [1.0001, 1.02, 1.7, 30.0, 1e9])
def test_every_axis_has_a_tick_and_none_is_outside(low, span):
    found = style.log_ticks(low, low * span, 7)
    assert found
    assert len(found) <= 10
    assert all(low * (1 - 1e-8) <= place <= low * span * (1 + 1e-8) for place in found)


def test_legend_and_title_stay_on_the_sheet_whatever_they_say():
    labels = [f"a solver of {i} with a very long name, $x_1$ and _more_ of it " * 3 for i in range(7)] + ["_hidden"]
    handles = [Line2D([], [], label=label) for label in labels]
    with style.styled(), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure, axes = style.sheet("A title that goes on and on $ and on $ " * 5, [2.0, 2.0], 1.0, handles, share_y=True)
        figure.draw_without_rendering()
    width, height = figure.bbox.size
    assert [text.get_text().split()[0] for text in figure.texts] == ["A", *["a"] * 7, "_hidden"]
    for artist in (*figure.texts, *figure.artists):
        box = artist.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height
    boxes = [text.get_window_extent() for text in figure.texts[1:]]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert max(box.y1 for box in boxes) < axes[0].get_tightbbox().y0
    assert figure.texts[0].get_window_extent().y0 > axes[0].get_window_extent().y1
    for line, text, label in zip(figure.artists, figure.texts[1:], labels, strict=True):
        assert text.get_text().split() == label.split()
        assert line.get_window_extent().x1 < text.get_window_extent().x0
        assert line.get_window_extent().y0 == pytest.approx(sum(text.get_window_extent().intervaly) / 2, abs=3)


def test_letters_that_the_font_lacks_are_no_warning_while_figures_are_made():
    label = "ソルバー 中文"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert style.text_width(label) > 0
        with style.styled():
            figure, (axis,) = style.sheet(label, [1.0], 1.0, [Line2D([], [], label=label * 9)])
            axis.set_xlabel(label)
            figure.draw_without_rendering()
        assert set(style.files(figure, ["svg", "png", "pdf"])) == {"svg", "png", "pdf"}
        with style.styled(), pytest.raises(UserWarning, match="another"):
            warnings.warn("another", stacklevel=1)
        with pytest.raises(UserWarning, match="Glyph"):
            warnings.warn("Glyph 20013 missing from font(s)", stacklevel=1)  # silenced there alone


def test_a_figure_is_the_same_file_twice_and_only_in_the_formats_asked_for():
    with style.styled():
        figure, _ = style.sheet("T", [2.0], 1.0)
    assert list(style.files(figure, ["png"])) == ["png"]
    first, again = (style.files(figure, ["svg", "png", "pdf"]) for _ in range(2))
    assert first == again
