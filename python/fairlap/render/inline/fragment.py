"""The shell of what is shown within another page: a style that reaches nothing else, and the colours of that page.

A notebook has a theme of its own, which need not be that of the system. So texts and lines have the colour that they
inherit, and contestants have colours that can be seen on light and on dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from fairlap.render.charts.parts.look import INHERITED
from fairlap.render.document import Picture
from fairlap.render.report.markup import Child, Markup, tag, trusted


def fragment(*parts: Child, contestants: int = 0) -> str:
    """Every text in it is escaped; nothing is loaded and nothing runs."""
    style = files("fairlap.render.inline").joinpath("fragment.css").read_text("utf-8")
    colours = enumerate(INHERITED.colours(contestants))
    named = "".join(f"--contestant-{place}:{colour};" for place, colour in colours)
    return tag("div", tag("style", trusted(style)), *parts, class_="fairlap-inline", style=named or None)


def figure(picture: Picture) -> Markup:
    """Draw it in the colours of the page around it, which a picture in a file of its own would not have."""
    drawn = picture.draw(INHERITED) if picture.draw else ""
    return tag("figure", drawn, tag("figcaption", picture.note, class_="caption"))


def notes(texts: Sequence[str]) -> Markup | None:
    return tag("ul", (tag("li", text) for text in texts), class_="caption") if texts else None
