"""What the figures of joint and independent models share: their looks, errors word by word, coefficients as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.quattoni.annotation_models import MODELS
from bench_mtl.papers.quattoni.annotation_verdicts import NAMES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bench_mtl.core.types import Array


def looks_of(models: Sequence[str] = MODELS, **more: Any) -> dict[str, dict[str, Any]]:
    """Return the look of the line of each model, in matplotlib's words; `more` changes some of it."""
    from bench_mtl.report.figures import style

    looks = style.styles_in_turn(MODELS)
    return {model: style.line(looks[model], **({"markersize": 4.5, "linewidth": 1.3} | more)) for model in models}


def handles(looks: Mapping[str, dict[str, Any]]) -> list[Any]:
    """Return the entries of a legend of models, or of what else has these looks."""
    from matplotlib.lines import Line2D

    return [Line2D([], [], label=NAMES.get(name, name), **look) for name, look in looks.items()]


def drawn_words(panels: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Draw the error of each word, a marker for each model; the panels, by their titles, are those of `by_word`."""
    from bench_mtl.report.figures import style

    looks = looks_of(linestyle="none")
    with style.styled():
        figure, axes = style.sheet(title, [4.6] * len(panels), 2.6, handles(looks), headed=1, below=1.0)
        for axis, (name, words) in zip(axes, panels.items(), strict=True):
            places = list(range(len(words)))
            for model, look in looks.items():
                axis.plot(places, words[model], **look)
            axis.set(title=name, ylabel="mean EER", xlim=(-0.7, len(words) - 0.3))
            axis.set_xticks(places, list(words.index), rotation=90, fontsize=7.5)
    return figure


def picture_of(row: Mapping[Any, Any], model: str) -> Array:
    """Return the sizes of the coefficients that a row keeps of a model, features x words."""
    import numpy as np

    return np.reshape(row[f"{model}_picture"], (int(row[f"{model}_picture_rows"]), -1))


def drawn_pictures(pictures: Sequence[tuple[str, Array]], title: str, width: float = 1.9, columns: str = "words") -> Figure:
    """Draw sizes of coefficients, features in rows and tasks in columns, which are called `columns`, each picture with its label."""
    from bench_mtl.report.figures import style

    with style.styled():
        figure, axes = style.sheet(title, [width] * len(pictures), 4.2, headed=1)
        for axis, (label, sizes) in zip(axes, pictures, strict=True):
            _draw_matrix(axis, sizes)
            axis.set(title=label, xlabel=columns)
        axes[0].set_ylabel("features")
    return figure


def _draw_matrix(axis: Axes, sizes: Any) -> None:
    import numpy as np

    shades = np.sqrt(sizes)
    largest = float(np.quantile(shades[shades > 0.0], 0.99)) if (shades > 0.0).any() else 1.0
    axis.imshow(shades, aspect="auto", interpolation="nearest", cmap="Greys", vmin=0.0, vmax=largest)
    axis.grid(visible=False)
    for side in ("top", "right"):
        axis.spines[side].set_visible(True)
