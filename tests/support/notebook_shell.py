"""A notebook's code cells, run in order without IPython: what its shell does for a magic, and nothing else."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Shell:
    """Has what ``load_ipython_extension`` asks of IPython."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {"__name__": "__main__"}
        self.magics: dict[str, Callable[..., Any]] = {}

    def register_magic_function(self, function: Callable[..., Any], kind: str) -> None:
        assert kind == "line_cell"
        self.magics[function.__name__] = function

    def run_cell(self, source: str) -> Any:
        """Return the value of its last expression, which a notebook shows."""
        if source.startswith("%%"):
            line, _, cell = source.partition("\n")
            name, _, rest = line.removeprefix("%%").partition(" ")
            return self.magics[name](rest, cell)
        shown = None
        for part in parts_of(source):
            shown = self._run_magic(part[1:]) if part.startswith("%") else self._run_python(part)
        return shown

    def _run_magic(self, line: str) -> Any:
        name, _, rest = line.partition(" ")
        if name == "load_ext":
            from importlib import import_module

            return import_module(rest.strip()).load_ipython_extension(self)
        return self.magics[name](rest)

    def _run_python(self, source: str) -> Any:
        body = ast.parse(source).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "<cell>", "exec"), self.user_ns)
        if not isinstance(last, ast.Expr):
            return None
        return eval(compile(ast.Expression(last.value), "<cell>", "eval"), self.user_ns)


def parts_of(source: str) -> list[str]:
    """Split at lines that are magics, in their order."""
    parts: list[str] = [""]
    for line in source.splitlines():
        if line.startswith("%"):
            parts += [line, ""]
        else:
            parts[-1] += f"{line}\n"
    return [part for part in parts if part.strip()]


def code_cells(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
