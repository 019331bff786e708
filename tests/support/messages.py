"""Every error and warning that fairlap's source can raise, as a template: ``python tests/support/messages.py``.

What is filled in stands in braces. A text that is put together elsewhere is in angle brackets, as the expression that
gives it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "python" / "fairlap"
USAGE = {"UsageError", "CalledWrongly", "BadParameter", "ClickException"}  # click's, which have no code
FIRST = "FairlapError"
WARNING = "Notice"

# Said as nobody says it, or not to be said to a user.
AVOIDED = re.compile(
    r"\b(told|whoever|whom|nobody|somebody|anew|please|oops|sorry|illegal|unfortunately)\b"
    r"|(?<!there )\bis no (?!longer)|\bheld against\b|\bto be had\b|\bsuccessfully\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, order=True)
class Message:
    code: str  # empty where the source computes it
    place: str
    text: str

    @property
    def is_whole(self) -> bool:
        """Whether the text is where the error is raised."""
        return not self.text.startswith("<")


def messages() -> list[Message]:
    nodes = {path: list(_calls_and_classes(path)) for path in sorted(SOURCE.rglob("*.py"))}
    codes = _codes_of_errors([each for found in nodes.values() for each in found])
    return sorted(each for path, found in nodes.items() for each in _in(path, found, codes))


def _calls_and_classes(path: Path) -> Iterator[ast.AST]:
    return (each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, (ast.Call, ast.ClassDef)))


def _codes_of_errors(nodes: list[ast.AST]) -> dict[str, str]:
    """Map every class of errors to its code, its own or the one that it inherits."""
    classes = {each.name: each for each in nodes if isinstance(each, ast.ClassDef)}
    codes: dict[str, str] = {}

    def code_of(name: str) -> str | None:
        if name not in classes:
            return None
        own = [
            _constant(each.value)
            for each in classes[name].body
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "code"
        ]
        bases = (code_of(each.id) for each in classes[name].bases if isinstance(each, ast.Name))
        return own[0] if own else next((each for each in bases if each), None)

    for name in classes:
        if code := code_of(name):
            codes[name] = code
    return codes


def _in(path: Path, nodes: list[ast.AST], codes: dict[str, str]) -> Iterator[Message]:
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name != WARNING and name not in USAGE and name not in codes:
            continue
        place = f"{path.relative_to(SOURCE)}:{node.lineno}"
        texts = [_template(each) for each in node.args]
        if name == WARNING and len(node.args) > 1:
            yield Message(_constant(node.args[0]), place, texts[1])
        elif name in USAGE and texts:
            yield Message("", place, texts[0])
        elif name in codes and texts:
            named = [_constant(each.value) for each in node.keywords if each.arg == "code"]
            yield Message(named[0] if named else codes[name], place, texts[0])


def _constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _template(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(each.value) if isinstance(each, ast.Constant) else f"{{{ast.unparse(each.value)}}}"  # type: ignore[attr-defined]
            for each in node.values
        )
    return f"<{ast.unparse(node)}>"


if __name__ == "__main__":
    for each in messages():
        print(f"{each.code or '-'}\t{each.place}\t{each.text}")
