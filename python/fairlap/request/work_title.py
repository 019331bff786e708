"""Works for people: their labels, but for works that are no model."""

from __future__ import annotations

from collections.abc import Iterable

from fairlap.request.names import CALLABLES, COMMAND

CALLABLE = "callable"  # the model that stands for no model
_NOT_MODELS = {COMMAND: "commands", CALLABLES: "callables"}  # by the framework of contestants


def model_titled(title: str) -> tuple[str, str]:
    """Find the model in the store and, where the title is not of a model, the framework of its contestants."""
    framework = next((each for each, named in _NOT_MODELS.items() if named == title), "")
    return (CALLABLE, framework) if framework else (title, "")


def work_title(label: str, data: str, frameworks: Iterable[str] = ()) -> str:
    """Title a work, with what its calls were fed where they were fed anything.

    The model that stands for no model has no name, and no mode, precision or batch: ``frameworks`` are those of the
    contestants, which show what was raced.
    """
    kinds = set(frameworks)
    if label.startswith(f"{CALLABLE} · ") and kinds and kinds <= set(_NOT_MODELS):
        label = " and ".join(title for framework, title in _NOT_MODELS.items() if framework in kinds)
    return f"{label} · fed {data}" if data else label
