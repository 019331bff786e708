"""What a command's -h and --help print: the options that matter with examples, and all options in sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from fairlap.cli.options.added_options import AddedOption
from fairlap.suggestions import did_you_mean

_TEXT_WIDTH = 80
_WITHOUT_SECTIONS = 14  # options at most

RACE_SECTIONS: Mapping[str, str] = {
    "What to race": "on command parameter batch mode precision device data processes scaling hosts",
    "Your own model": "shapes dims shapes-from inputs items before after generate reference range trust",
    "Training, with --mode train": "loss optimizer schedule start-from to-score train-on fraction epochs "
    "count-evaluation keep-weights",
    "Differential equations, with --mode solve": "error tolerances",
    "Load": "p99 p90 p50 first-token workers largest-batch longest-wait trial users think scenario logs",
    "Load of servers that stream": "tokens rate arrivals concurrency per-token shared-prefix overload slow-clients "
    "abort clients ca insecure",
    "Under which conditions": "threads conditions seconds cache regime lock-clocks seed data-seed memory-limit "
    "sandbox remote pass-env",
    "How long": "runs budget blocks fresh target only-winner max-slowdown best-budget wait",
    "What to prove and rank": "baseline slowdown same-output reported across-precisions max-drop metric labels groups "
    "corrupt price require for",
    "What else to measure": "profile trace recompile count-allocations min-memory max-batch max-batch-budget",
    "Plans and results": "dry-run save-plan plan resume recheck store output json quiet",
    "Help": "h help",
}


class Group(click.Group):
    """Answers a mistyped command with the nearest one, or with where they are listed."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        [name, *_] = args
        if name in self.list_commands(ctx) or name.startswith("-"):
            return super().resolve_command(ctx, args)
        hint = did_you_mean(name, self.list_commands(ctx)) or f"`{ctx.command_path} -h` lists the commands"
        raise click.UsageError(f"no command named {name!r}; {hint}")


class Command(click.Command):
    """A command whose -h fits a screen.

    ``essential`` names the options that -h shows, where there are too many; ``examples`` are commands, each with what
    it does on the next line; ``sections`` have the options of --help, by their titles.
    """

    def __init__(
        self,
        *args: Any,
        essential: str = "",
        examples: str = "",
        sections: Mapping[str, str] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.essential, self.examples, self.sections = essential.split(), examples.strip(), sections or {}
        short = click.Option(["-h"], is_flag=True, is_eager=True, expose_value=False, callback=_print_essentials)
        short.help = "Show the options that matter most, and examples."
        self.params.append(short)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        self._require_once(ctx, list(args))
        return super().parse_args(ctx, args)

    def _require_once(self, ctx: click.Context, args: list[str]) -> None:
        """Click takes the last of an option that is given twice, so a contestant would be dropped in silence."""
        given = self.make_parser(ctx).parse_args(args)[2]
        for parameter in given:
            if not isinstance(parameter, click.Option) or parameter.multiple or parameter.is_flag:
                continue
            if given.count(parameter) > 1:
                typed = [name for name in parameter.opts if any(each.partition("=")[0] == name for each in args)]
                what = " and ".join(typed) or parameter.opts[0]
                several = f"; separate its values with commas: {what} a,b" if "," in str(parameter.type.name) else ""
                raise click.UsageError(f"{what} is given {given.count(parameter)} times; give it once{several}", ctx)

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        return ["--help"]

    def essentials(self, ctx: click.Context) -> str:
        formatter = click.HelpFormatter(width=_TEXT_WIDTH)
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text((self.help or "").partition("\n\n")[0])
        by_name = _options(self, ctx)
        shown = [by_name[name] for name in self.essential or by_name]
        _write_options(formatter, ctx, "Options", shown, _width_of(shown, ctx))
        self._write_examples(formatter)
        fewer = len(shown) < len(by_name)
        formatter.write(
            f"\n`{ctx.command_path} --help` " + (f"shows all {len(by_name)} options." if fewer else "says more.")
        )
        return formatter.getvalue()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = _width_of(_options(self, ctx).values(), ctx)
        for title, options in sections_of(self, ctx).items():
            _write_options(formatter, ctx, title, options, width)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self._write_examples(formatter)

    def _write_examples(self, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for line in self.examples.splitlines():
                formatter.write(f"  {line}\n")


def _title(title: str, by_name: Mapping[str, click.Option]) -> str:
    """Leave out under which option a section holds, in a command that does not have it."""
    short, _, option = title.partition(", with --")
    return title if not option or option.split()[0] in by_name else short


def sections_of(command: click.Command, ctx: click.Context) -> dict[str, list[click.Option]]:
    """Return the options of --help, by the titles of their sections."""
    by_name = _options(command, ctx)
    sections = command.sections if isinstance(command, Command) and len(by_name) > _WITHOUT_SECTIONS else {}
    found = {
        _title(title, by_name): [by_name[name] for name in names.split() if name in by_name]
        for title, names in (sections or {"Options": " ".join(by_name)}).items()
    }
    if sections:
        placed = [each for options in found.values() for each in options]
        found["Of scenarios of installed packages"] = [
            each for each in by_name.values() if isinstance(each, AddedOption) and each not in placed
        ]
    return found


def _options(command: click.Command, ctx: click.Context) -> dict[str, click.Option]:
    """By the longest of their names: ``on``, ``to-score``."""
    options = [each for each in command.get_params(ctx) if isinstance(each, click.Option)]
    return {max(each.opts, key=len).lstrip("-"): each for each in options}


def _print_essentials(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing and isinstance(ctx.command, Command):
        click.echo(ctx.command.essentials(ctx))
        ctx.exit()


def names_of(option: click.Option, ctx: click.Context) -> str:
    """With the value: ``-o, --output FILE``."""
    names = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        return f"{names} / {', '.join(option.secondary_opts)}"
    value = "" if option.is_flag else option.make_metavar(ctx)
    return f"{names} {'N' if value.startswith('INTEGER') else value}".rstrip()


def _width_of(options: Iterable[click.Option], ctx: click.Context) -> int:
    return max(len(names_of(each, ctx)) for each in options)


def _write_options(
    formatter: click.HelpFormatter, ctx: click.Context, title: str, options: Sequence[click.Option], width: int
) -> None:
    if options:
        with formatter.section(title):
            for each in options:
                note = "  [required]" if each.required else f"  [default: {each.default}]" if each.show_default else ""
                formatter.write(f"  {names_of(each, ctx):{width}}  {each.help or ''}{note}\n")
