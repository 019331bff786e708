"""The pages, downloads and documents, each by its address: what the commands for stored runs show, from the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import msgspec

from fairlap.browse.guard import POLICY
from fairlap.browse.list_page import RunList, page_of
from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.history.foreign.foreign_history import any_history_of
from fairlap.printed_document import PrintedDocument
from fairlap.render.document import Document
from fairlap.render.encoders import encoded
from fairlap.render.outputs import FORMATS
from fairlap.request.units import Share
from fairlap.results.decision.question import question_of
from fairlap.store.errors import NoSuchRun
from fairlap.store.figures import stored_models
from fairlap.store.file_store import Store
from fairlap.store.runs.run_file import RunDocument, run_document
from fairlap.store.runs.run_ids import is_an_id, utc_text
from fairlap.store.search import RunSummaries, Wanted
from fairlap.store.store import open_store

RUNS_ON_A_PAGE = 50
_MOST_RUNS_ON_A_PAGE = 200
_MOST_SIDE_BY_SIDE = 20
_DEFAULT_MARGIN = "1%"


@dataclass(frozen=True)
class Content:
    body: bytes
    kind: str = "text/html; charset=utf-8"
    policy: str = POLICY
    file: str = ""  # the name to save it under


@dataclass(frozen=True)
class Asked:
    run: str  # of the path
    values: Mapping[str, Sequence[str]]

    def one(self, name: str) -> str:
        given = self.values.get(name, ())
        if len(given) > 1:
            raise InvalidRequest(f"{name} is given more than once")
        return given[0].strip() if given else ""


@dataclass(frozen=True)
class View:
    content: Callable[[Asked], Content]
    parameters: tuple[str, ...] = ()


@contextmanager
def _store() -> Iterator[Store]:
    """Open the store for one request, so that the next one notices a store that is replaced, repaired or gone."""
    with open_store(reading=True) as store, store.one_moment():
        yield store


def _list(asked: Asked) -> Content:
    return Content(page_of(_runs(asked)))


def _list_document(asked: Asked) -> Content:
    found = _runs(asked)
    return _json(RunSummaries(list(found.runs), found.older or None))


def _runs(asked: Asked) -> RunList:
    """One more than is shown is read, to see whether there are older ones."""
    wanted = Wanted(asked.one("model"), asked.one("on"), _since(asked), asked.one("before"))
    if wanted.before and not is_an_id(wanted.before):
        raise InvalidRequest("before is not the id of a run, such as 20260131-140502-k3f")
    limit = _limit(asked.one("limit"))
    try:
        with _store() as store:
            runs, models = store.runs(wanted, limit + 1), store.ask(stored_models)
    except NoSuchRun as error:
        return RunList(wanted, [], note=str(error))
    older = runs[limit - 1].run if len(runs) > limit else ""
    return RunList(wanted, runs[:limit], older, asked.one("limit"), models=models)


def _report(asked: Asked) -> Content:
    from fairlap.render.report.page import page_of, policy
    from fairlap.results.results import results_of

    _require("html")
    with _store() as store:
        run = store.id_of(asked.run)
        results = results_of(store.load(run), run, samples=partial(store.samples, run))
        return Content(page_of(results).encode(), policy=policy())


def _run_document(asked: Asked) -> Content:
    from fairlap.results.results import results_of

    with _store() as store:
        run = store.id_of(asked.run)
        saved, state, rows = store.load(run), store.state(run), store.rows(run)
    return _json(run_document(saved, results_of(saved, run), state=state, rows=rows))


def _rows(asked: Asked, *, suffix: str, kind: str) -> Content:
    from fairlap.render import outputs

    with _store() as store:
        run = store.id_of(asked.run)
        return Content(outputs.encoded(store.rows(run), FORMATS[suffix]), kind, file=f"{run}{suffix}")


def _run_file(asked: Asked) -> Content:
    with _store() as store:
        run = store.id_of(asked.run)
        return Content(store.exported(run), "application/json", file=f"{run}.run.json")


def _history(asked: Asked) -> Content:
    _require("html")
    return Content(encoded(_history_of(asked), "html"))


def _history_document(asked: Asked) -> Content:
    return _json(_history_of(asked).data)


def _history_of(asked: Asked) -> Document:
    from fairlap.render.trends.document import document_of

    model, margin = asked.one("model"), Share(asked.one("margin") or _DEFAULT_MARGIN)
    if not model:
        raise InvalidRequest("give the model whose history to show: /history?model=NAME")
    since = _since(asked)
    with _store() as store:
        branch = asked.one("branch")
        quantity = asked.one("quantity")
        found = any_history_of(
            store, model, on=asked.one("on"), since=since, branch=branch, quantity=quantity, margin=margin
        )
        return document_of(found)


def _across(asked: Asked) -> Content:
    _require("html")
    return Content(encoded(_across_of(asked), "html"))


def _across_document(asked: Asked) -> Content:
    return _json(_across_of(asked).data)


def _across_of(asked: Asked) -> Document:
    """Of stored runs alone: a file of this machine is not for a browser to name."""
    from fairlap.render.across.document import document_of
    from fairlap.store.stored_rows import rows_stored

    names = asked.values.get("run", ())
    if not 1 <= len(names) <= _MOST_SIDE_BY_SIDE:
        raise InvalidRequest(f"choose 1 to {_MOST_SIDE_BY_SIDE} runs: /across?run=ID&run=ID (got {len(names)})")
    question = question_of(asked.one("require"), asked.one("for"))
    with _store() as store:
        found = [rows_stored(store, name) for name in names]
    return document_of(found, question=question)


def _since(asked: Asked) -> str:
    given = asked.one("since")
    utc = utc_text(given)
    if given and not utc:
        raise InvalidRequest(f"{given!r} is not a date such as 2026-01-31 or 2026-01-31T14:00")
    return utc


def _limit(text: str) -> int:
    if not text:
        return RUNS_ON_A_PAGE
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= _MOST_RUNS_ON_A_PAGE):
        raise InvalidRequest(f"limit must be between 1 and {_MOST_RUNS_ON_A_PAGE} (got {text!r})")
    return int(text)


def _require(format_name: str) -> None:
    if missing := FORMATS[f".{format_name}"].missing():
        raise NotAvailable(missing)


def _json(document: PrintedDocument | RunDocument) -> Content:
    return Content(msgspec.json.encode(document) + b"\n", "application/json")


_LIST = ("model", "on", "since", "before", "limit")
_HISTORY = ("model", "on", "since", "branch", "quantity", "margin")
_ACROSS = ("run", "require", "for")

VIEWS = {
    "/": View(_list, _LIST),
    "/runs/{run}": View(_report),
    "/runs/{run}/rows.csv": View(partial(_rows, suffix=".csv", kind="text/csv; charset=utf-8")),
    "/runs/{run}/rows.json": View(partial(_rows, suffix=".json", kind="application/json")),
    "/runs/{run}/run.json": View(_run_file),
    "/history": View(_history, _HISTORY),
    "/across": View(_across, _ACROSS),
    "/api/runs": View(_list_document, _LIST),
    "/api/runs/{run}": View(_run_document),
    "/api/history": View(_history_document, _HISTORY),
    "/api/across": View(_across_document, _ACROSS),
}
