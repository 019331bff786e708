"""HTML as a browser reads it, and whether every element that is opened is closed in its place."""

from __future__ import annotations

import re
from html.parser import HTMLParser

EMPTY = {"br", "col", "img", "input", "link", "meta", "source", "wbr"}


class ReadHtml(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.styles: list[str] = []
        self.scripts: list[str] = []
        self.misplaced: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.misplaced += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.misplaced.append(tag)

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        {"style": self.styles, "script": self.scripts}.get(inside, self.texts).append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts)).strip()

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]
