"""Answers for machines, on the command line."""

from __future__ import annotations

from typing import Any

import click


def print_json(told: Any) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
