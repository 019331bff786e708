"""A program that uses fairlap by the rules of docs/reference/programs.md, and knows nothing else of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KNOWN = {
    "fairlap.models/1",
    "fairlap.frameworks/1",
    "fairlap.doctor/1",
    "fairlap.comparison/1",
    "fairlap.run/4",
    "fairlap.gate/1",
    "fairlap.judgement/1",
    "fairlap.code/1",
    "fairlap.error/1",
}
DECISIONS = {"faster": "keep", "slower": "discard", "equivalent": "discard", "inconclusive": "undecided"}


@dataclass
class Client:
    folder: Path
    commands: list[tuple[str, ...]] = field(default_factory=list)  # that it called
    statuses: list[int] = field(default_factory=list)

    def ask(self, *arguments: str) -> dict[str, Any]:
        """Call a command, and read its document by its schema."""
        document: dict[str, Any] = json.loads(self._call(*arguments, "--json"))
        if document["schema"] not in KNOWN:
            raise ValueError(f"{document['schema']} is not known to this client")
        return document

    def report(self, file: str) -> str:
        self._call("report", "last", "-o", file)
        return (self.folder / file).read_text()

    def explained(self, document: dict[str, Any]) -> dict[str, str]:
        """Explain every code that the document has."""
        return {code: self.ask("explain", code)["text"] for code in sorted(codes_in(document))}

    def _call(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "fairlap", *arguments],
            cwd=self.folder, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        self.commands.append(arguments)
        self.statuses.append(done.returncode)
        return done.stdout


def comparisons_in(document: dict[str, Any]) -> list[dict[str, Any]]:
    if document["schema"] == "fairlap.run/4":
        return [each for work in document["work_results"] for each in work["comparisons"]]
    return list(document["comparisons"])


def decision(document: dict[str, Any], candidate: str) -> str:
    """Keep, discard or undecided."""
    for each in comparisons_in(document):
        if each["a"] == candidate:
            return DECISIONS[each["verdict"]]
        if each["b"] == candidate:
            turned = {"faster": "slower", "slower": "faster"}
            return DECISIONS[turned.get(each["verdict"], each["verdict"])]
    return "undecided"


def codes_in(document: dict[str, Any]) -> set[str]:
    """Of the error, of rows that did not finish, and of warnings."""
    if document["schema"] == "fairlap.error/1":
        return {document["error"]["code"]}
    found = {work["no_verdict_code"] for work in document.get("work_results", ())}
    for each in (*document.get("rows", ()), *comparisons_in(document)):
        found |= {warning["code"] for warning in each["warnings"]} | {each.get("code")}
    return found - {None, ""}
