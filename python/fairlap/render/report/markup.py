"""HTML in which every text is escaped, unless it was made here."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairlap.printable import visible
from fairlap.render.charts.parts.labels import chart_text

_EMPTY = frozenset({"br", "col", "img", "input", "link", "meta", "source", "wbr"})
_PART_OF_A_NAME = re.compile(r"(?<=[:=,])(?=\S)")
_IN_SCRIPTS = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class Markup(str):
    """Text that is HTML already. Only this module makes it from text, and ``trusted`` from files of this package."""

    __slots__ = ()


Child = Markup | str | Iterable[Markup | str] | None


def tag(element: str, /, *children: Child, **attributes: str | bool | None) -> Markup:
    """One element. ``class_`` is written as class, ``data_work`` as data-work; None and False leave one out."""
    attributes_text = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if element in _EMPTY:
        return Markup(f"<{element}{attributes_text}>")
    return Markup(f"<{element}{attributes_text}>{joined(*children)}</{element}>")


def joined(*children: Child) -> Markup:
    """Elements and texts, one after the other."""
    return Markup("".join(_inside(child) for child in children))


def breaking(text: str) -> Markup:
    """Let a contestant's long name break after each of its parts."""
    first, *others = _PART_OF_A_NAME.split(text)
    return joined(first, [each for part in others for each in (tag("wbr"), part)])


def trusted(text: str) -> Markup:
    """Mark a style sheet or a script of this package as markup, unless it would close its own element."""
    if any(end in text.lower() for end in ("</script", "</style", "<!--")):
        raise ValueError("a text that ends its own element cannot be put into a page")
    return Markup(text)


def json_island(element_id: str, value: Any) -> Markup:
    """Put data for the page's program into an element that no text in it can end, nor begin another."""
    return Markup(f'<script type="application/json" id="{html.escape(element_id)}">{as_json(value)}</script>')


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_IN_SCRIPTS)


def _inside(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return html.escape(visible(_encodable(child)))
    return "".join(_inside(each) for each in child)


def _attribute(key: str, value: str | bool | None) -> str:
    if value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(_encodable(str(value)))}"'


def _encodable(text: str) -> str:
    """Half characters, which a strange worker can send, cannot be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()


def table(
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Mapping[str, Markup | str]],
    class_: str | None = None,
    contestants: Sequence[str] = (),
) -> Markup:
    """Render a table by its heads, with its roles written out: a narrow screen shows its rows as cards.

    ``contestants`` has the contestant of each row, for the page's filter.
    """
    head = tag("tr", (tag("th", each, scope="col", role="columnheader") for each in heads), role="row")
    body = (
        tag(
            "tr",
            (tag("td", row.get(each, ""), data_head=each, role="cell") for each in heads),
            role="row",
            data_contestant=chart_text(contestants[place]) if contestants else None,
        )
        for place, row in enumerate(rows)
    )
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", head, role="rowgroup"),
        tag("tbody", body, role="rowgroup"),
        role="table",
        class_=class_,
    )


def scrolling(label: str, inside: Markup, class_: str = "scroll") -> Markup:
    """Let what is wider than the screen be moved within it, by keyboard too."""
    return tag("div", inside, class_=class_, tabindex="0", role="region", aria_label=label)
