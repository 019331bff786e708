"""The pages of a board. Nothing runs in them and nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import groupby

from fairlap.board.board import Board, Cell
from fairlap.board.filters import Filters
from fairlap.quantity_text import count
from fairlap.render.report.markup import Child, Markup, breaking, joined, scrolling, tag
from fairlap.render.report.still_page import still_page

_OF_RUNS = (
    "The number before a figure is its place in its own run; places with = are shared. Intervals are those of the run, "
    "too. Cells of different runs did not alternate, so there is no verdict between them."
)
_FEW_WORKS = 3  # which need no list of links


def board_page(board: Board) -> bytes:
    """Every text of the store is escaped; classes and addresses have numbers and hashes alone."""
    works = [list(own) for _, own in groupby(board.document.cells, key=lambda cell: (cell.work_id, cell.data))]
    filters = Filters(works)
    links = [
        tag("a", own[0].work, href=f"#w{place}", class_=_of_work(place, own, filters))
        for place, own in enumerate(works)
    ]
    parts: Sequence[Markup | None] = (
        _summary(board),
        filters.boxes() if works else None,
        tag("nav", links, aria_label="Works") if len(works) > _FEW_WORKS else None,
        tag("p", "Nothing is chosen.", class_="note none") if works else None,
        *(_work(place, own, filters) for place, own in enumerate(works)),
        _flips(board),
        tag("p", f"{_OF_RUNS} Check the evidence with ", tag("code", "fairlap verify FILE"), ".", class_="note"),
        _omitted(board),
    )
    return still_page("Board", *parts, style=_style() + filters.style())


def history_pages(board: Board) -> dict[str, bytes]:
    """All runs of each work and machine, the newest first."""
    cells = sorted([*board.document.cells, *board.older], key=lambda cell: cell.history)
    return {address: _history(list(own), board) for address, own in groupby(cells, key=lambda cell: cell.history)}


def _style() -> str:
    return files("fairlap.board").joinpath("board.css").read_text("utf-8")


def _summary(board: Board) -> Markup:
    cells = board.document.cells
    if not cells:
        return tag("p", "No run is on this board.", class_="note")
    sizes = (
        count(len({cell.model for cell in cells}), "model"),
        count(len({cell.contestant for cell in cells}), "contestant"),
        count(len({cell.machine_fingerprint for cell in cells}), "machine"),
    )
    newest = max(cell.recorded_at for cell in cells)[:10]
    data = tag("a", "board.json", href="board.json")
    return tag("p", f"{', '.join(sizes)}; the newest run is of {newest}. The same for programs: ", data, class_="plain")


def _history(cells: Sequence[Cell], board: Board) -> bytes:
    contestants = list(dict.fromkeys(cell.contestant for cell in cells))
    rows = []
    for recorded_at, run in sorted({(cell.recorded_at, cell.run) for cell in cells}, reverse=True):
        own = {cell.contestant: cell for cell in cells if cell.run == run}
        evidence = _evidence(run, "../") if run in board.bundles else None
        began = _row_head(recorded_at[:16].replace("T", " "), tag("small", run), evidence)
        rows.append(tag("tr", began, [_figure(name, own.get(name)) for name in contestants], role="row"))
    first = cells[0]
    heads = [_head("began"), *(_head(breaking(name)) for name in contestants)]
    table = _table(f"{first.work} on {first.machine}, the newest run first", heads, rows)
    back = tag("nav", tag("a", "Back to the board", href="../index.html"))
    facts = tag("p", f"{first.machine}; {_judged_by(first)}; {first.conditions}", class_="plain")
    return still_page(first.work, back, facts, scrolling("Runs", table), style=_style())


def _work(place: int, cells: Sequence[Cell], filters: Filters) -> Markup:
    """Show one work: machines by contestants."""
    first = cells[0]
    contestants = {cell.contestant: filters.class_of("f", cell) for cell in cells}
    heads = [_head("machine"), *(_head(breaking(name), class_) for name, class_ in contestants.items())]
    rows = []
    for history in dict.fromkeys(cell.history for cell in cells):
        own = {cell.contestant: cell for cell in cells if cell.history == history}
        of = next(iter(own.values()))
        of_one_run = len({cell.run for cell in own.values()}) == 1
        about = joined(tag("small", f"{of.conditions}, {of.recorded_at[:10]}"), _evidence(of.run))
        machine = _row_head(
            of.machine, about if of_one_run else tag("small", of.conditions), tag("a", "history", href=history)
        )
        figures = [
            _figure(name, own.get(name), class_, with_run=not of_one_run) for name, class_ in contestants.items()
        ]
        rows.append(tag("tr", machine, figures, class_=filters.class_of("c", of), role="row"))
    table = _table(f"{_judged_by(first)}{f', fed {first.data}' if first.data else ''}", heads, rows)
    inside = scrolling(first.work, table)
    return tag("section", tag("h2", first.work), inside, class_=_of_work(place, cells, filters), id=f"w{place}")


def _of_work(place: int, cells: Sequence[Cell], filters: Filters) -> str:
    return f"w{place} {filters.class_of('m', cells[0])}"


def _judged_by(cell: Cell) -> str:
    return f"{cell.judged_by}, {cell.judged_better} is better"


def _figure(contestant: str, cell: Cell | None, class_: str = "", *, with_run: bool = False) -> Markup:
    """Show a cell of the table, empty where the contestant did not run; bounds are below the figure."""
    if cell is None:
        return tag("td", role="cell", class_=class_ or None)
    value, _, bounds = cell.text.partition(" [") if cell.judged is not None else (cell.text, "", "")
    parts = (
        tag("span", cell.place, class_="place") if cell.place else None,
        tag("span", value, class_="value" if cell.outcome == "finished" else "trouble"),
        tag("span", f"[{bounds}", class_="bounds") if bounds else None,
        tag("small", cell.version) if cell.version else None,
        tag("small", cell.recorded_at[:10], " ", _evidence(cell.run)) if with_run else None,
    )
    best = "best" if cell.place in ("1", "1=") else ""
    return tag("td", *parts, role="cell", data_head=contestant, class_=f"{class_} {best}".strip() or None)


def _evidence(run: str, above: str = "") -> Markup:
    """Link a bundle by its run, whose id has digits and letters alone: the store's reader refuses another."""
    return tag("a", "evidence", href=f"{above}bundles/{run}.fairlap", download=True)


def _table(caption: str, heads: Iterable[Markup], rows: Iterable[Markup]) -> Markup:
    """Write roles out, since a narrow screen shows rows as cards."""
    head = tag("thead", tag("tr", heads, role="row"), role="rowgroup")
    return tag(
        "table", tag("caption", caption), head, tag("tbody", rows, role="rowgroup"), role="table", class_="cards board"
    )


def _head(name: Markup | str, class_: str | None = None) -> Markup:
    return tag("th", name, scope="col", role="columnheader", class_=class_)


def _row_head(name: str, *about: Child) -> Markup:
    return tag("th", tag("span", name, class_="machine"), *about, scope="row", role="rowheader")


def _flips(board: Board) -> Markup | None:
    found = [tag("li", each.text) for each in board.document.flips]
    return tag("section", tag("h2", "Where rankings flip"), tag("ul", found)) if found else None


def _omitted(board: Board) -> Markup | None:
    found = board.document.omitted
    if not found:
        return None
    head = tag("tr", tag("th", "run", scope="col"), tag("th", "why", scope="col"))
    rows = (tag("tr", tag("td", each.run), tag("td", each.why)) for each in found)
    title = f"Runs left out: {len(found):,}"
    return tag(
        "details",
        tag("summary", title),
        scrolling(title, tag("table", tag("caption", title), tag("thead", head), tag("tbody", rows))),
    )
