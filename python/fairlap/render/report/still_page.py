"""A page without scripts, whose charts are pictures in it."""

from __future__ import annotations

from importlib.resources import files

from fairlap.render.report.markup import Child, tag, trusted

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def still_page(title: str, *parts: Child) -> bytes:
    style = files("fairlap.render.report").joinpath("page.css").read_text("utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} – fairlap"),
        tag("style", trusted(style)),
    )
    name = tag("div", tag("span", "fairlap", class_="mark"), tag("h1", title), class_="name")
    body = tag("body", tag("header", name), tag("main", *parts))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n".encode()
