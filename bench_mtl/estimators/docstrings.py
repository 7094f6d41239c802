"""Docstrings of estimators: what a model says itself, and what it has from its family, put together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from inspect import cleandoc
from typing import Any, NamedTuple

#: What the losses are, of a score t and a label or target y.
FORMULAS = {
    "hinge": "max(0, 1 - y t)",
    "logistic": "log(1 + exp(-y t))",
    "squared": "1/2 (y - t)^2",
    "huber": '1/2 (y - t)^2 up to |y - t| = delta, and beyond delta |y - t| - delta^2 / 2 (delta = 0.5 of "huber:0.5", else 1)',
    "quantile": 'max(q (y - t), (q - 1) (y - t)) (q = 0.9 of "quantile:0.9", else 0.5)',
}

#: The losses of numbers, and of labels -1 and +1.
OF_NUMBERS, OF_LABELS = ("squared", "huber", "quantile"), ("hinge", "squared", "logistic")


def choices(model: Any) -> tuple[str, ...]:
    """Return the losses that a model may have, of those that its problems take."""
    return tuple(loss for loss in getattr(model, "fits", ()) if loss in (OF_NUMBERS if model._is_numeric else OF_LABELS))


_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


class Text(NamedTuple):
    """A docstring in parts."""

    summary: str
    body: str
    sections: dict[str, str]

    @staticmethod
    def of(docstring: str | None, *, has_summary: bool = True) -> Text:
        head, *parts = _TITLE.split(cleandoc(docstring or ""))
        summary, _, body = head.strip().partition("\n\n") if has_summary else ("", "", head.strip())
        return Text(summary, body, {title: words.strip() for title, words in zip(parts[::2], parts[1::2], strict=True)})


def completed(model: Any, texts: Sequence[Text], more: Sequence[Text], parameters: Sequence[str]) -> str:
    """Return the docstring of a model, of its own text and those of its family, the nearest first: what several explain is explained by the
    first. `more` is of the model that it chooses parameters for, and `parameters` are the names of all parameters in their order."""
    bodies = [text.body for text in texts if text.body]
    sources = [*texts, _of_choices(model, parameters), *more]
    found = sorted(_items(sources, "Parameters", parameters), key=lambda item: parameters.index(item[0][0]))
    sections = {
        "Parameters": "\n".join(words for _, words in found),
        "Attributes": "\n".join(words for _, words in _items(sources, "Attributes")),
        **{title: next((text.sections[title] for text in texts if title in text.sections), "") for title in ("References", "Examples")},
    }
    written = [f"{title}\n{'-' * len(title)}\n{words}" for title, words in sections.items() if words]
    chosen = (" or " if getattr(model, "are_alternatives", False) else " and ").join(getattr(model, "tuned", ()))
    summary = texts[0].summary or f"`{model.plain.__name__}` with its {chosen} chosen by cross-validation."
    return "\n\n".join(part for part in (summary, *bodies, _losses(model, "".join(bodies)), *written) if part) + "\n"


def _items(texts: Sequence[Text], title: str, among: Sequence[str] | None = None) -> Iterator[tuple[list[str], str]]:
    """Yield the items of a section that explain names which no earlier one explains, and these names; all names, or those given."""
    seen = set[str]()
    for text in texts:
        for item in re.split(r"\n(?=\S)", text.sections.get(title, "")):
            head, *below = item.split("\n")
            names, *kind = head.split(" : ", 1)
            fresh = [name for name in names.split(", ") if name not in seen and (among is None or name in among)]
            seen.update(fresh)
            if head and fresh:
                yield fresh, "\n".join([" : ".join([", ".join(fresh), *kind]), *below])


def _of_choices(model: Any, parameters: Sequence[str]) -> Text:
    """Return what the choice of a loss and the grids of parameters are."""
    losses = ", ".join(f'"{loss}"' for loss in choices(getattr(model, "plain", model)))
    items, grids = [f"loss : {{{losses}}}"], [name for name in parameters if name.endswith("_grid")]
    if grids:
        items.append(f"{', '.join(grids)} : int or list\n    The values to choose from, see above.")
    return Text("", "", {"Parameters": "\n".join(items)})


def _losses(model: Any, bodies: str) -> str:
    """Return what the loss and the problem are, of a model that a registered solver fits."""
    is_chosen, lines = "loss" in model.__dataclass_fields__, list[str]()
    for loss in choices(model):
        if is_chosen or loss == model.loss:
            fit = model.fits[loss]
            formula = f"loss(t, y) = {FORMULAS[loss]}, " if "loss(" in bodies else ""
            lines.append(f"    {loss}: {formula}the problem `{fit.problem}`, by default solved by `{fit.preferred[0][0]}`")
    head = "The loss is" if model._is_numeric else "Labels y are -1 and +1, and the loss is"
    return "\n".join([f"{head} one of" if is_chosen else "The loss is", "", *lines]) if lines else ""
