"""``%load_ext fairlap``: race snippets of a notebook or of an IPython session, as ``%timeit`` times one.

    %fairlap sorted(numbers) ; sorted(shuffled)

    %%fairlap budget=5
    ## sorted
    sorted(numbers)
    ## shuffled
    sorted(shuffled)

A snippet runs as the body of a function in the user's namespace: names that it assigns are its own, and what its last
expression gives is its answer. Its time includes the call of that function, which that of ``%timeit`` does not.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fairlap.errors import InvalidRequest

if TYPE_CHECKING:
    from fairlap.scenarios.callables.result import InProcessComparison

HEADING = "## "
_USAGE_OF_LINE = "give two snippets or more: %fairlap sorted(a) ; sorted(b)"
_USAGE_OF_CELL = "begin each snippet of the cell with a line that names it, such as `## first`"
_USAGE_OF_OPTIONS = "options are Python's, as of fairlap.compare: %%fairlap budget=5, margin=0.01"


def load_ipython_extension(shell: Any) -> None:
    """Add ``%fairlap`` and ``%%fairlap`` to IPython."""
    if not callable(getattr(shell, "register_magic_function", None)):
        raise InvalidRequest("IPython calls this, with its shell; there, write: %load_ext fairlap")

    def fairlap(line: str, cell: str | None = None) -> InProcessComparison:
        """Race snippets: %fairlap sorted(a) ; sorted(b), or a cell with a line `## NAME` above each of them."""
        try:
            return raced(line, cell, shell.user_ns)
        except InvalidRequest as error:
            from IPython.core.error import UsageError  # which IPython shows as one line

            raise UsageError(f"{error} [{error.code}]") from None

    fairlap._ipython_magic_no_var_expand = True  # type: ignore[attr-defined]  # braces are Python's
    shell.register_magic_function(fairlap, "line_cell")


def raced(line: str, cell: str | None, namespace: dict[str, Any]) -> InProcessComparison:
    """Race the snippets of a line, or those of a cell with the options in its first line."""
    from fairlap.scenarios.callables.in_process import compare

    snippets = snippets_of_line(line) if cell is None else snippets_of_cell(cell)
    options = {} if cell is None else _options(line, namespace)
    return compare({name: _callable_of(name, source, namespace) for name, source in snippets.items()}, **options)


def snippets_of_line(line: str) -> dict[str, str]:
    """By their own text, which semicolons separate; a comment at the end is left out."""
    tokens = _tokens(line := line.strip())
    line = line[: next((token.start[1] for token in tokens if token.type == tokenize.COMMENT), None)]
    ends = [token.start[1] for token in tokens if token.string == ";" and token.type == tokenize.OP]
    parts = [line[start:end].strip() for start, end in zip([0, *(end + 1 for end in ends)], [*ends, None], strict=True)]
    named: dict[str, str] = {}
    for part in filter(None, parts):
        named[part if part not in named else f"{part} ({len(named) + 1})"] = part
    if len(named) < 2:
        raise InvalidRequest(_USAGE_OF_LINE)
    return named


def snippets_of_cell(cell: str) -> dict[str, str]:
    """By the heading above each of them. Headings are looked for among comments, not in strings."""
    headings = [
        token.start[0]
        for token in _tokens(cell)
        if token.type == tokenize.COMMENT and token.start[1] == 0 and token.string.startswith(HEADING)
    ]
    lines = cell.split("\n")  # as tokenize counts them
    before = lines[: headings[0] - 1] if headings else lines
    if len(headings) < 2 or any(line.strip() and not line.startswith("#") for line in before):
        raise InvalidRequest(f"{_USAGE_OF_CELL}; there are two or more, and nothing before the first")
    named: dict[str, str] = {}
    for start, end in zip(headings, [*(each - 1 for each in headings[1:]), len(lines)], strict=True):
        name = lines[start - 1].removeprefix(HEADING).strip()
        if not name or name in named:
            raise InvalidRequest(f"a snippet of the cell is named {name!r}; give each another name")
        named[name] = "\n" * start + "\n".join(lines[start:end])  # its lines keep their numbers
    return named


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError) as error:
        raise InvalidRequest(f"the snippets are not valid Python: {error.args[0]}") from None


def _callable_of(name: str, source: str, namespace: dict[str, Any]) -> Callable[[], object]:
    """Compile the snippet as a function that returns the value of its last expression."""
    place = f"<fairlap {name}>"
    try:
        body = ast.parse(source, place).body
        if body and isinstance(last := body[-1], ast.Expr):
            body[-1] = ast.copy_location(ast.Return(last.value), last)
        module = ast.parse("def snippet(): pass")
        [function] = module.body
        assert isinstance(function, ast.FunctionDef)
        function.body = body
        code = compile(module, place, "exec") if body else None
    except SyntaxError as error:
        raise InvalidRequest(f"the snippet {name!r} is not a valid body of a function: {error.msg}") from None
    if code is None:
        raise InvalidRequest(f"the snippet {name!r} has no code")
    made: dict[str, Callable[[], object]] = {}
    exec(code, namespace, made)
    return made["snippet"]


def _options(line: str, namespace: dict[str, Any]) -> Mapping[str, Any]:
    try:
        code = compile(f"dict({line})", "<fairlap options>", "eval")
    except SyntaxError:
        raise InvalidRequest(_USAGE_OF_OPTIONS) from None
    try:
        found: dict[str, Any] = eval(code, namespace)
    except (TypeError, ValueError):  # not by name
        raise InvalidRequest(_USAGE_OF_OPTIONS) from None
    return found
