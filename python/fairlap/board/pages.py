"""The pages of a board. Nothing runs in them: filters are check boxes that the style sheet reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from fairlap.board.board import Board, Cell
from fairlap.render.report.markup import Markup, breaking, joined, scrolling, tag
from fairlap.render.report.still_page import still_page

_STYLE = """
fieldset { border: 1px solid var(--line); border-radius: .5rem; display: flex; flex-wrap: wrap; gap: .3rem 1rem; }
legend { color: var(--muted); } td small, th small { color: var(--muted); display: block; font-weight: normal; }
"""
_FILTERS: Sequence[tuple[str, str, Callable[[Cell], str]]] = (
    ("m", "Models", lambda cell: cell.model),
    ("f", "Frameworks", lambda cell: cell.framework),
    ("c", "Machines", lambda cell: cell.machine),
)
_OF_RUNS = (
    "Places and intervals are those of a cell's own run. Cells of different runs did not alternate, so there is no "
    "verdict between them."
)
_CHECK = "Check a cell's evidence with `fairlap verify FILE`."


def board_page(board: Board) -> bytes:
    """Every text of the store is escaped; classes and addresses have numbers and hashes alone."""
    cells = board.document.cells
    names = {mark: _numbered(map(of, cells)) for mark, _, of in _FILTERS}
    works = [_work(list(own), names, board) for _, own in groupby(cells, key=lambda cell: (cell.work_id, cell.data))]
    empty = None if cells else tag("p", "No run is on this board.", class_="note")
    notes = tag("p", f"{_OF_RUNS} {_CHECK}", class_="note")
    hidden = "".join(
        f"main:has(#{mark}{number}:not(:checked)) .{mark}{number} {{ display: none; }}\n"
        for mark, of_mark in names.items()
        for number in of_mark.values()
    )
    return still_page(
        "Board", _filters(names), empty, *works, _flips(board), notes, _omitted(board), style=_STYLE + hidden
    )


def history_pages(board: Board) -> dict[str, bytes]:
    """All runs of each work and machine, the newest first."""
    cells = sorted([*board.document.cells, *board.older], key=lambda cell: cell.history)
    return {address: _history(list(own), board) for address, own in groupby(cells, key=lambda cell: cell.history)}


def _history(cells: Sequence[Cell], board: Board) -> bytes:
    contestants = list(dict.fromkeys(cell.contestant for cell in cells))
    runs = sorted({(cell.recorded_at, cell.run) for cell in cells}, reverse=True)
    rows = []
    for recorded_at, run in runs:
        own = {cell.contestant: cell for cell in cells if cell.run == run}
        evidence = _evidence(run, "../") if run in board.bundles else ""
        figures = [_figure(own[name]) if name in own else "" for name in contestants]
        rows.append([recorded_at[:16].replace("T", " "), run, *figures, evidence])
    heads = ["began", "run", *contestants, "evidence"]
    first = cells[0]
    facts = tag("p", f"{first.machine}; {first.judged_by}; {first.conditions}", class_="note")
    back = tag("p", tag("a", "Back to the board", href="../index.html"))
    found = scrolling("Runs", _grid(f"{first.work} on {first.machine}, the newest run first", heads, rows))
    return still_page(first.work, facts, found, back, style=_STYLE)


def _work(cells: Sequence[Cell], names: dict[str, dict[str, int]], board: Board) -> Markup:
    """Show one work: machines by contestants."""
    first = cells[0]
    contestants = {cell.contestant: cell.framework for cell in cells}
    head = tag(
        "tr",
        tag("th", "machine", scope="col"),
        [
            tag("th", breaking(name), scope="col", class_=f"f{names['f'][framework]}")
            for name, framework in contestants.items()
        ],
    )
    rows = []
    for history in dict.fromkeys(cell.history for cell in cells):
        own = {cell.contestant: cell for cell in cells if cell.history == history}
        of = next(iter(own.values()))
        machine = tag("th", of.machine, tag("small", of.conditions), tag("a", "history", href=history), scope="row")
        figures = [
            tag("td", _cell(own[name]) if name in own else "", class_=f"f{names['f'][framework]}")
            for name, framework in contestants.items()
        ]
        rows.append(tag("tr", machine, figures, class_=f"c{names['c'][of.machine]}"))
    caption = tag("caption", f"{first.judged_by}{f', fed {first.data}' if first.data else ''}")
    whole = tag("table", caption, tag("thead", head), tag("tbody", rows))
    return tag("section", tag("h2", first.work), scrolling(first.work, whole), class_=f"m{names['m'][first.model]}")


def _cell(cell: Cell) -> Markup:
    return joined(_figure(cell), tag("small", cell.recorded_at[:10], " ", _evidence(cell.run)))


def _figure(cell: Cell) -> Markup:
    place = f"{cell.place}. " if cell.place else ""
    return joined(f"{place}{cell.text}", tag("small", cell.version) if cell.version else None)


def _evidence(run: str, above: str = "") -> Markup:
    """Link a bundle by its run, whose id has digits and letters alone: the store's reader refuses another."""
    return tag("a", "evidence", href=f"{above}bundles/{run}.fairlap", download=True)


def _filters(names: dict[str, dict[str, int]]) -> Markup:
    def box(mark: str, number: int, name: str) -> Markup:
        return tag("label", tag("input", type="checkbox", id=f"{mark}{number}", checked=True), " ", name or "unnamed")

    return joined(
        tag("fieldset", tag("legend", title), [box(mark, number, name) for name, number in names[mark].items()])
        for mark, title, _ in _FILTERS
    )


def _flips(board: Board) -> Markup | None:
    found = [tag("li", each.text) for each in board.document.flips]
    return tag("section", tag("h2", "Where rankings flip"), tag("ul", found)) if found else None


def _omitted(board: Board) -> Markup | None:
    found = [[each.run, each.why] for each in board.document.omitted]
    if not found:
        return None
    summary = tag("summary", f"Runs left out: {len(found):,}")
    return tag("details", summary, _grid("Runs left out", ["run", "why"], found))


def _grid(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Markup | str]]) -> Markup:
    """Fill a table by place, since contestants may have any names."""
    head = tag("tr", (tag("th", breaking(each), scope="col") for each in heads))
    body = (tag("tr", (tag("td", each) for each in row)) for row in rows)
    return tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body))


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(set(names)))}
