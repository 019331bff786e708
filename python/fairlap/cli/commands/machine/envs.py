"""``fairlap envs``: the environments made for contestants, and removing them."""

from __future__ import annotations

import click
import msgspec

from fairlap import quantity_text
from fairlap.cli.help import Group
from fairlap.cli.output import print_json, print_line
from fairlap.launch.environments import State
from fairlap.printed_document import PrintedDocument

_DAY_S = 24 * 3600.0


class ListedEnvironment(msgspec.Struct, frozen=True):
    key: str
    state: State
    made: str | None  # date and time; None while it is incomplete
    size_bytes: int
    requirements: tuple[str, ...]
    options: tuple[str, ...]  # of the contestant, which it was made with: python=, build=, index= and find_links=


class EnvironmentList(PrintedDocument, frozen=True, tag="fairlap.environments/1"):
    folder: str  # that holds them
    environments: list[ListedEnvironment]
    wheels: list[str]  # that were built from sources


@click.group("envs", cls=Group, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the environments made for contestants; `fairlap envs remove` and `fairlap envs prune` remove them."""
    if ctx.invoked_subcommand is None:
        _list(as_json)


def _list(as_json: bool) -> None:
    from fairlap.launch.environments import environments, environments_folder, wheels_folder
    from fairlap.launch.packages.built_wheels import wheels_in

    found = environments()
    built = sorted(wheel.name for place in wheels_in(wheels_folder()) for wheel in place.glob("*.whl"))
    if as_json:
        listed = [
            ListedEnvironment(
                each.key, each.state, each.made or None, each.size_bytes(), each.requirements, each.options
            )
            for each in found
        ]
        print_json(EnvironmentList(str(environments_folder()), listed, built))
        return
    if not found and not built:
        print_line(f"no environments yet; they are made in {environments_folder()}")
        return
    for each in found:
        size = quantity_text.size(each.size_bytes())
        made = each.made or each.state
        print_line(f"{each.key}  {made:<19}  {size:>9}  {', '.join((*each.requirements, *each.options))}".rstrip())
    if built:
        print_line(f"built from sources: {', '.join(built)}")
    print_line(f"in {environments_folder()}")
    if any(each.state == "incomplete" for each in found):
        click.echo("incomplete: its installation was interrupted; `fairlap envs remove KEY` removes it")


@command.command("remove")
@click.argument("keys", nargs=-1, metavar="KEY...")
@click.option("--all", "everything", is_flag=True, help="Remove every environment, and the wheels built for them.")
def remove(keys: tuple[str, ...], everything: bool) -> None:
    """Remove environments by the keys that `fairlap envs` lists."""
    from fairlap.errors import InvalidRequest
    from fairlap.launch.environments import environments, remove_environment, wheels_folder
    from fairlap.launch.packages.built_wheels import remove_wheel, wheels_in

    if everything == bool(keys):
        raise InvalidRequest("give the keys of the environments to remove, or --all")
    for key in [each.key for each in environments()] if everything else keys:
        remove_environment(key)
        print_line(f"removed {key}")
    for place in wheels_in(wheels_folder()) if everything else ():
        remove_wheel(place)


@command.command("prune")
@click.option("--days", type=click.IntRange(min=0), default=30, help="Unused for so many days.  [default: 30]")
def prune_command(days: int) -> None:
    """Remove environments that no race has used lately, incomplete ones, and wheels that were built as long ago."""
    from fairlap.launch.environments import prune

    removed = prune(days * _DAY_S)
    for each in removed:
        print_line(f"removed {each}")
    if not removed:
        print_line(f"nothing was unused for {days} days")
