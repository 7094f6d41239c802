"""How estimators print, and their docstrings: what a model says itself, and what it has from its family, put together."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any

#: What the losses are, of a score t and a label or target y.
FORMULAS = {"hinge": "max(0, 1 - y t)", "logistic": "log(1 + exp(-y t))", "squared": "1/2 (y - t)^2"}

_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ITEMISED = ("Parameters", "Attributes")
_ORDER = (*_ITEMISED, "References", "Examples")


@dataclass
class Text:
    """A docstring in parts."""

    summary: str
    body: str
    sections: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(docstring: str | None) -> Text:
        head, *parts = _TITLE.split(cleandoc(docstring or ""))
        summary, _, body = head.strip().partition("\n\n")
        return Text(summary, body, {title: words.strip() for title, words in zip(parts[::2], parts[1::2], strict=True)})

    def items(self, title: str) -> list[tuple[tuple[str, ...], str]]:
        """Return the items of a section with the names that each is of."""
        found = re.split(r"\n(?=\S)", self.sections.get(title, ""))
        return [(tuple(re.split(r",? or |, ", item.split("\n")[0].split(" : ")[0].replace("`", ""))), item) for item in found if item]


def completed(model: Any, texts: Sequence[Text], parameters: Sequence[str]) -> str:
    """Return the docstring of a model.

    Parameters
    ----------
    texts : its own, and then those of its family, the nearest first: a parameter is explained by the first that names it
    parameters : the names of all parameters in their order
    """
    heads = [texts[0].summary, *(text.body for text in texts), _losses(model, texts)]
    sections = {title: next((text.sections[title] for text in texts if title in text.sections), "") for title in _ORDER[2:]}
    for title in _ITEMISED:
        items = _first_of_each(item for text in texts for item in text.items(title))
        if title == "Attributes" and hasattr(model, "tuned"):
            chosen = [f"{name}_{end}" for end in ("", "grid_") for name in model.tuned]
            what = "What is chosen, and the values of the settings, one a row of `cv_scores_`"
            items.insert(0, (tuple(chosen), f"{', '.join(chosen)}\n    {what}{' (of one of the two)' if model.are_alternatives else ''}."))
        if title == "Parameters":
            items += _remaining(model, [name for name in parameters if not any(name in names for names, _ in items)])
            items.sort(key=lambda item: min(parameters.index(name) for name in item[0]))
        sections[title] = "\n".join(words for _, words in items)
    written = [f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in _ORDER if sections[title]]
    return "\n\n".join(part for part in [*heads, *written] if part) + "\n"


def _first_of_each(items: Iterable[tuple[tuple[str, ...], str]]) -> list[tuple[tuple[str, ...], str]]:
    found: list[tuple[tuple[str, ...], str]] = []
    for names, words in items:
        if not any(name in others for name in names for others, _ in found):
            found.append((names, words))
    return found


def _shown(model: Any) -> dict[str, Any]:
    """Return the problems of a model by the losses that it may have."""
    fits = getattr(model, "fits", {})
    return {loss: fit for loss, fit in fits.items() if _has_choice(model) or loss == model.loss}


def _has_choice(model: Any) -> bool:
    """Whether the loss is a parameter."""
    return "loss" in model.__dataclass_fields__


def _by_loss(names: dict[str, str]) -> str:
    """Return names of what is used for each loss, of which a name says for which losses where there are several."""
    groups = {name: [loss for loss, other in names.items() if other == name] for name in names.values()}
    return " or ".join(f"`{name}`" + (f" ({', '.join(losses)})" if len(groups) > 1 else "") for name, losses in groups.items())


def _losses(model: Any, texts: Sequence[Text]) -> str:
    """Return what the loss and the problem are, of a model that a registered solver fits."""
    shown = _shown(model)
    if not shown:
        return ""
    problem = f"The problem is {_by_loss({loss: fit.problem for loss, fit in shown.items()})}."
    if not any("loss(" in text.body for text in texts):
        return problem
    if not _has_choice(model):
        return f"Here loss(t, y) = {FORMULAS[model.loss]}. {problem}"
    lines = [f"    {loss:<10} loss(t, y) = {FORMULAS[loss]}" for loss in shown]
    return "\n".join(["Labels y are -1 and +1, and the loss is one of", "", *lines, "", problem])


def _remaining(model: Any, names: list[str]) -> list[tuple[tuple[str, ...], str]]:
    """Return items for the parameters that no text explains: the loss, and those that all models have."""
    plain, items = getattr(model, "plain", None), list[tuple[tuple[str, ...], str]]()
    if grids := [f"{name}_grid" for name in getattr(model, "tuned", ()) if f"{name}_grid" in names]:
        which = "At most one of the two; 10 radii where there is none" if model.are_alternatives else "The values to choose from"
        items.append((tuple(grids), f"{', '.join(grids)} : int or list\n    {which}."))
        names = [name for name in names if name not in grids]
    if "loss" in names:
        choices = ", ".join(f'"{loss}"' for loss in (plain or model).fits)
        items.append((("loss",), f"loss : {{{choices}}}"))
    others = [name for name in names if name != "loss"]
    lines = [", ".join(others)]
    if plain is not None:
        lines.append(f"As in `{plain.__name__}`. `tol`, `max_iter` and `max_seconds` are those of every single fit.")
    else:
        lines.append("See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.")
        if shown := _shown(model):
            lines.append(f"The default solver is {_by_loss({loss: fit.preferred[0][0] for loss, fit in shown.items()})}.")
    return [*items, (tuple(others), "\n    ".join(lines))] if others else items


def two_lines(text: str) -> str:
    """Return a text in two lines at most, broken between words; what does not fit is left out."""
    options: dict[str, Any] = {"max_lines": 2, "placeholder": " ...)", "break_long_words": False, "break_on_hyphens": False}
    return "\n".join(textwrap.wrap(text, 100, subsequent_indent="    ", **options))
