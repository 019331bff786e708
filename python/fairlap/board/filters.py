"""What is shown of a board: check boxes that the style sheet reads, since nothing runs in the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fairlap.board.board import Cell
from fairlap.render.report.markup import Markup, tag

_BY: Sequence[tuple[str, str, Callable[[Cell], str]]] = (
    ("m", "Models", lambda cell: cell.model),
    ("f", "Frameworks", lambda cell: cell.framework),
    ("c", "Machines", lambda cell: cell.machine),
)


class Filters:
    """Number the names, so that no text of a store gets into the style sheet.

    The section of a work has the class of its model and ``w`` with its place, a column that of its framework, and a
    row that of its machine.
    """

    def __init__(self, works: Sequence[Sequence[Cell]]) -> None:
        self._works = works
        self._numbers: Mapping[str, Mapping[str, int]] = {
            mark: {name: number for number, name in enumerate(sorted({of(cell) for own in works for cell in own}))}
            for mark, _, of in _BY
        }

    def class_of(self, mark: str, cell: Cell) -> str:
        [of] = [of for each, _, of in _BY if each == mark]
        return f"{mark}{self._numbers[mark][of(cell)]}"

    def boxes(self) -> Markup:
        def box(mark: str, number: int, name: str) -> Markup:
            checked = tag("input", type="checkbox", id=f"{mark}{number}", checked=True)
            return tag("label", checked, name or "unnamed", class_="chip")

        return tag(
            "form",
            [
                tag("fieldset", tag("legend", title), [box(mark, number, name) for name, number in names.items()])
                for mark, title, names in ((mark, title, self._numbers[mark]) for mark, title, _ in _BY)
            ],
            tag("button", "Show all", type="reset"),
            autocomplete="off",  # else a browser that loads the page again keeps boxes unchecked
        )

    def style(self) -> str:
        """Hide what a box leaves out, and a work whose rows or columns are all left out."""
        rules = [
            f"main:has(#{mark}{number}:not(:checked)) .{mark}{number} {{ display: none; }}"
            for mark, names in self._numbers.items()
            for number in names.values()
        ]
        for mark, _, _ in _BY:
            rules.append(f"{self._without(mark, self._works)} .none {{ display: block; }}")
            rules += [
                f"{self._without(mark, [own])} .w{place} {{ display: none; }}" for place, own in enumerate(self._works)
            ]
        return "\n".join(rules)

    def _without(self, mark: str, works: Sequence[Sequence[Cell]]) -> str:
        """Select a page on which no box of these works is checked."""
        boxes = sorted({self.class_of(mark, cell) for own in works for cell in own})
        return f"main:not(:has({', '.join(f'#{box}:checked' for box in boxes)}))"
