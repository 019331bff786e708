"""All that the store has of a model over time: its trends, and the changes in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.errors import InvalidRequest
from fairlap.history.changes import Change, SmallestStep, changes_in, smallest_steps
from fairlap.history.trends import Trend, trends_of
from fairlap.request.work_title import model_titled
from fairlap.results.quantities.row_quantities import E_QUANTITY, RowQuantity, row_quantity
from fairlap.store.errors import NoSuchRun
from fairlap.store.figures import machines_of_runs, quantities_held, recorded_figures, stored_models
from fairlap.store.file_store import Store
from fairlap.suggestions import did_you_mean


@dataclass(frozen=True)
class TrendHistory:
    trend: Trend
    changes: tuple[Change, ...]
    smallest_steps: tuple[SmallestStep, ...]  # that would have been found, of contestants without a change


@dataclass(frozen=True)
class ModelHistory:
    model: str
    on: str  # contestants or frameworks; empty for all
    since: str
    branch: str  # of git; empty for all
    margin: float  # smaller changes are left out
    trends: tuple[TrendHistory, ...]
    quantity: RowQuantity | None = None  # None: what contestants were judged by
    foreign: str = ""  # the tool that measured all of it, where that was not fairlap
    sources: tuple[str, ...] = ()  # what it was imported from


def history_of(
    store: Store, model: str, *, on: str = "", since: str = "", branch: str = "", quantity: str = "", margin: float
) -> ModelHistory:
    asked = row_quantity(quantity) if quantity else None
    recorded, framework = model_titled(model)
    machines = store.ask(machines_of_runs, recorded, since)
    if branch:
        machines = _on_branch(machines, model, branch)
    figures = [
        each
        for each in store.ask(recorded_figures, recorded, since, asked)
        if framework in ("", each.framework) and (not branch or each.run in machines)
    ]
    if asked is not None and not figures:
        _require_held(store, recorded, since, asked)
    trends = trends_of(figures, machines, model=model, on=on)
    for name in on.split(","):
        if not any(trend.asked(name) for trend in trends):
            known = {name for each in figures for name in (each.framework, each.contestant)}
            raise NoSuchRun(_why_nothing(store, model, name, since, known))
    found = []
    for trend in trends:
        changes = changes_in(trend, machines, on=on, margin=margin)
        steps = smallest_steps(trend, changes, on=on, margin=margin)
        found.append(TrendHistory(trend, tuple(changes), tuple(steps)))
    return ModelHistory(model, on, since, branch, margin, tuple(found), asked)


def _require_held(store: Store, model: str, since: str, asked: RowQuantity) -> None:
    """Name the quantities that rows of the model have, where none has this one."""
    held = store.ask(quantities_held, model, since)
    if held and asked.column not in held:
        raise InvalidRequest(f"no run of {model} has a {asked.key}; they have {', '.join(held)}", code=E_QUANTITY)


def _on_branch(machines: Mapping[str, dict[str, str]], model: str, branch: str) -> dict[str, dict[str, str]]:
    found = {run: facts for run, facts in machines.items() if facts.get("git branch") == branch}
    if machines and not found:
        known = {facts["git branch"] for facts in machines.values() if "git branch" in facts}
        meant = did_you_mean(branch, known) or f"they are on {', '.join(sorted(known)) or 'no branch that is known'}"
        raise NoSuchRun(f"no run of {model} was on the branch {branch!r}; {meant}")
    return found


def _why_nothing(store: Store, model: str, on: str, since: str, known: set[str]) -> str:
    when = f" since {since[:16].replace('T', ' ')}" if since else ""
    if known:
        meant = did_you_mean(on, known) or f"stored runs of it have {', '.join(sorted(known))}"
        return f"no {on!r} finished {model}{when}; {meant}"
    models = store.ask(stored_models)
    if model_titled(model)[0] in models:
        return f"no contestant finished {model}{when}; `fairlap runs --model {model}` lists its runs"
    sizes = ", ".join(each for each in models if each.startswith(f"{model}["))
    meant = (f"runs have {sizes}" if sizes else did_you_mean(model, models)) or "`fairlap runs` lists what is stored"
    return f"there is no run of {model!r} in {store.path}; {meant}"
