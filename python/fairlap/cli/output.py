"""What the command line prints: texts or JSON documents, and errors with their codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlap.printable import filtered, one_line
from fairlap.secrets import json_without_secrets, without_secrets, without_secrets_or_queries

if TYPE_CHECKING:
    from fairlap.printed_document import PrintedDocument
    from fairlap.race.progress import Messages, Silence
    from fairlap.render.document import Document
    from fairlap.render.outputs import Format
    from fairlap.store.runs.run_file import RunDocument

_SAY_ALL = ("E_FAIRLAP", "E_REQUEST", "E_USAGE")
"""Codes of many causes, whose message alone can say what to do."""

_printed_json = False
_error, _loss = 2, 1


def set_statuses(*, error: int = 2, loss: int = 1) -> None:
    """Set the exit statuses of an error, and of output or a file that is lost.

    Where 1 is a verdict, such as a failed gate, output that is lost must not end with it.
    """
    global _error, _loss
    _error, _loss = error, loss


def status_of_error() -> int:
    return _error


def status_of_loss() -> int:
    return _loss


def print_json(document: PrintedDocument | RunDocument) -> None:
    """Print the only document of a command that was called with --json."""
    global _printed_json
    encoded = _encoded(document)
    _printed_json = True
    click.echo(encoded, nl=False)


def print_result(document: PrintedDocument | RunDocument, text: str, *, as_json: bool, output: Sequence[Path]) -> None:
    """Print the text, or with --json the document, and write the document to each file of ``output``."""
    from fairlap.cli.options.output_options import writable
    from fairlap.machine.files.atomic_files import write_output

    for path, _ in writable(output, only=(".json",)):
        write_output(path, _encoded(document))
    print_json(document) if as_json else click.echo(text)


def print_document(document: Document, *, as_json: bool, files: Sequence[tuple[Path, Format]]) -> int:
    """Write the document to each file in its format, and print its text, or with --json its data.

    Returns the status of a loss where a file could not be written or drawn, which is said after the text, or 0.
    """
    from fairlap.render.encoders import write_document
    from fairlap.render.encoders.text import text_of

    failures = write_document(document, files)
    try:
        print_json(document.data) if as_json else click.echo(text_of(document))
    finally:  # also when standard output is full or closed
        for error in failures:
            print_error(str(error), error.code)
    return status_of_loss() if failures else 0


def _encoded(document: PrintedDocument | RunDocument) -> bytes:
    import msgspec

    return msgspec.json.format(json_without_secrets(msgspec.json.encode(document)), indent=2) + b"\n"


def print_error(message: str, code: str, *, as_json: bool = False) -> None:
    """Print one line on standard error, whatever the message holds, and on a terminal where to read what to do.

    With --json the error goes to standard output as well, unless the command's document has been printed there.
    """
    message = without_secrets_or_queries(message)
    click.echo(f"fairlap: {one_line(message)} [{code}]", err=True)
    if sys.stderr is not None and sys.stderr.isatty() and code not in _SAY_ALL:
        click.echo(f"  what to do: `fairlap explain {code}`", err=True)
    if as_json and not _printed_json:
        from fairlap.printed_document import error_document

        print_json(error_document(code, message))


def print_interruption() -> None:
    """Print the error document of a command that a signal ended before its own document was printed."""
    if not _printed_json:
        from fairlap.printed_document import error_document

        with suppress(OSError):  # standard output is full or closed
            print_json(error_document("E_INTERRUPTED", "interrupted before there was a result"))
            sys.stdout.flush()


def print_note(text: str) -> None:
    click.echo(f"fairlap: {one_line(without_secrets(text))}", err=True)


def print_line(text: object) -> None:
    """One line on standard output, whatever names, paths and messages are in it."""
    click.echo(one_line(text))


def progress_notes(*, quiet: bool) -> Messages | Silence:
    """Print what begins and may take long, or discard it; as a context, that it still goes on, too."""
    from fairlap.race.progress import Messages, Silence

    return Silence() if quiet else Messages()


def filter_output() -> None:
    """Filter what is printed from here on, so that a terminal or GitHub obeys none of its characters.

    Standard output becomes buffered: an unbuffered one (python -u) drops the rest of a write that a full disk cuts off,
    without an error. Characters that the output's encoding lacks become question marks.
    """
    sys.stdout = filtered(sys.stdout)
    if sys.stderr is not None:
        sys.stderr = filtered(sys.stderr)


def discard_output() -> None:
    """Keep the interpreter from writing again at its end what could not be written."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
