"""Works for people: their labels, but for works that are no model, and what their answers are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from fairlap.request.names import BENCHMARK, CALLABLES, COMMAND, OUTPUT, ContestantName
from fairlap.request.work import CALLABLE, Work

_DIGITS_SHOWN = 8
NOT_COMPARED = "answers not compared"
_NOT_MODELS = {COMMAND: "commands", CALLABLES: "callables", BENCHMARK: "benchmarks"}  # by the framework of contestants


def model_titled(title: str) -> tuple[str, str]:
    """Find the model in the store and, where the title is not of a model, the framework of its contestants."""
    bare, bracket, arguments = title.partition("[")
    framework = next((each for each, named in _NOT_MODELS.items() if named == bare), "")
    return (CALLABLE + bracket + arguments, framework) if framework else (title, "")


def work_title(label: str, data: str, frameworks: Iterable[str] = ()) -> str:
    """Title a work, with what its calls were fed where they were fed anything.

    The model that stands for no model has no name, and no mode, precision or batch: ``frameworks`` are those of the
    contestants, which show what was raced, and brackets have what draws the arguments of callables.
    """
    kinds = set(frameworks)
    model = label.partition(" · ")[0]
    if model.partition("[")[0] == CALLABLE and kinds and kinds <= set(_NOT_MODELS):
        named = " and ".join(title for framework, title in _NOT_MODELS.items() if framework in kinds)
        label = named + model.removeprefix(CALLABLE)
    return f"{label} · fed {data}" if data else label


def told_apart(titles: Mapping[str, str]) -> dict[str, str]:
    """By id of the work. Where two have one title, as a file before and after a change, each gets some of its id."""
    often = Counter(titles.values())
    return {work_id: title if often[title] == 1 else with_id(title, work_id) for work_id, title in titles.items()}


def with_id(title: str, work_id: str) -> str:
    return f"{title} · {work_id[:_DIGITS_SHOWN]}"


def compared_with(work: Work, contestants: Iterable[ContestantName]) -> str:
    """Name what answers are compared with where a work is no model; empty where they are not compared."""
    if work.source is not None:
        return "each other" if work.source.peer else work.source.shown
    outputs = {dict(name.options).get(OUTPUT, "") for name in contestants}
    return "" if "" in outputs else "the first output"
