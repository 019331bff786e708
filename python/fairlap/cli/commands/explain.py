"""``fairlap explain CODE``: what an error or a warning means and what to do about it."""

from __future__ import annotations

import re

import click

from fairlap.cli.help import Command
from fairlap.cli.output import print_json
from fairlap.errors import InvalidRequest
from fairlap.explanations import explanations, next_step, without_links
from fairlap.printed_document import PrintedDocument
from fairlap.suggestions import nearest

_MOST_OF_A_LINE = 90
_OF_VERDICTS = ("FASTER", "FASTEST", "SLOWER", "EQUIVALENT", "CLAIM", "OUTCOME", "WINNER")  # words of a table


class ExplainedCode(PrintedDocument, frozen=True, tag="fairlap.code/1"):
    code: str
    text: str  # Markdown
    what_to_do: str


class AllCodes(PrintedDocument, frozen=True, tag="fairlap.codes/1"):
    codes: dict[str, str]  # the text of each


def _first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=[.:;])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".:;")
    return sentence if len(sentence) <= _MOST_OF_A_LINE else f"{sentence[:_MOST_OF_A_LINE].rsplit(' ', 1)[0]} ..."


@click.command(
    "explain",
    cls=Command,
    examples="""
fairlap explain E_OUTPUT
    Say what a code means and what to do.
fairlap explain verdict
    Say what the outcomes mean, and what would refute one.
""",
)
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(code: str | None, as_json: bool) -> None:
    """Explain the code of an error or a warning, such as E_REQUEST. Without CODE, list all codes, each with a line."""
    known = explanations()
    if code is None:
        width = max(map(len, known))
        lines = (f"{name:<{width}}  {_first_sentence(without_links(text))}" for name, text in known.items())
        print_json(AllCodes(known)) if as_json else click.echo("\n".join(lines))
        return
    name = code.strip("[]").upper()
    name = "VERDICT" if name in _OF_VERDICTS else name
    if name not in known:
        near = nearest(name, known, most=3) or [each for each in known if name in each]
        hint = f"did you mean {', '.join(near)}?" if near else "`fairlap explain` lists all codes"
        raise InvalidRequest(f"no code {code!r}; {hint}")
    if as_json:
        print_json(ExplainedCode(name, known[name], next_step(known[name])))
    else:
        click.echo(f"{name}\n\n{without_links(known[name])}")
