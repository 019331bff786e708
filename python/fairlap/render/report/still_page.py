"""The shell of a page without scripts, whose charts are pictures in it."""

from __future__ import annotations

from importlib.resources import files

from fairlap.render.report.markup import Child, tag, trusted
from fairlap.version import __version__

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action {}"
_OFFLINE = f"Made by fairlap {__version__}. This page works offline and sends no data."


def still_page(
    title: str, *parts: Child, style: str = "", form_action: str = "'none'", footer: str = _OFFLINE
) -> bytes:
    """Nothing is loaded and nothing runs; ``style`` is added to that of all pages."""
    common = files("fairlap.render.report").joinpath("page.css").read_text("utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY.format(form_action)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),  # else browsers ask for one
        tag("title", f"{title} – fairlap"),
        tag("style", trusted(common + style)),
    )
    name = tag("div", tag("span", "fairlap", class_="mark"), tag("h1", title), class_="name")
    body = tag("body", tag("header", name), tag("main", *parts), tag("footer", footer))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n".encode()
