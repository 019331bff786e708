"""Manual pages, made from what --help prints: one for fairlap, one for each command and each of its subcommands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import cleandoc

import click

from fairlap.cli.help import Command, names_of, sections_of


def manual_pages(program: click.Group, version: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each file and what it holds."""
    yield from _pages_of(click.Context(program, info_name="fairlap"), version)


def _pages_of(ctx: click.Context, version: str) -> Iterator[tuple[str, str]]:
    name = ctx.command_path.replace(" ", "-")
    yield f"{name}.1", _page(ctx, name, version)
    if isinstance(ctx.command, click.Group):
        for sub in ctx.command.list_commands(ctx):
            command = ctx.command.get_command(ctx, sub)
            assert command is not None
            yield from _pages_of(click.Context(command, info_name=sub, parent=ctx), version)


def _page(ctx: click.Context, name: str, version: str) -> str:
    summary, *paragraphs = cleandoc(ctx.command.help or "").split("\n\n")
    usage = " ".join(ctx.command.collect_usage_pieces(ctx))
    lines = [
        f'.TH {name.upper()} 1 "" "fairlap {version}" "fairlap"',
        ".SH NAME",
        rf"{_text(name)} \- {_text(' '.join(summary.split())).rstrip('.')}",
        ".SH SYNOPSIS",
        rf".B {_text(ctx.command_path)}",
        _text(usage),
    ]
    if paragraphs:
        lines += [".SH DESCRIPTION", *(line for each in paragraphs for line in (".PP", _text(" ".join(each.split()))))]
    lines += _options(ctx)
    if isinstance(ctx.command, click.Group):
        lines += [".SH COMMANDS", *_commands(ctx, ctx.command)]
    if isinstance(ctx.command, Command):
        lines += [".SH EXAMPLES", ".nf", *map(_text, ctx.command.examples.splitlines()), ".fi"]
    if ctx.parent is not None:
        lines += [".SH SEE ALSO", rf".BR {_text(ctx.parent.command_path.replace(' ', '-'))} (1)"]
    return "\n".join(lines) + "\n"


def _options(ctx: click.Context) -> list[str]:
    sections = {title: options for title, options in sections_of(ctx.command, ctx).items() if options}
    lines = [".SH OPTIONS"] if sections else []
    for title, options in sections.items():
        lines += [f".SS {_text(title)}"] if len(sections) > 1 else []
        lines += [line for each in options for line in _entry(names_of(each, ctx), each.help or "")]
    return lines


def _commands(ctx: click.Context, group: click.Group) -> Iterator[str]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        yield from _entry(name, command.get_short_help_str(limit=200))


def _entry(name: str, meaning: str) -> Sequence[str]:
    return (".TP", rf".B {_text(name)}", _text(meaning))


def _text(text: str) -> str:
    """As roff takes it: no hyphen is broken or becomes a dash, and no line is a request."""
    escaped = text.replace("\\", r"\(rs").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped
