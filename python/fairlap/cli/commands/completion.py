"""``fairlap completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import click

from fairlap.cli.help import Command
from fairlap.cli.options.values import Choice


@click.command(
    "completion",
    cls=Command,
    examples="""
fairlap completion bash
    Print the script for bash.
""",
)
@click.argument("shell", type=Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that teaches a shell to complete fairlap's commands and options.

    For bash, put this into ~/.bashrc: eval "$(fairlap completion bash)"
    """
    from click.shell_completion import get_completion_class

    from fairlap.cli import cli

    found = get_completion_class(shell)
    assert found is not None, shell
    click.echo(found(cli, {}, "fairlap", "_FAIRLAP_COMPLETE").source())
