"""Manual pages say what --help says, for every command, in a form that man renders without a complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from command_line import invoke
from fairlap.cli import cli
from fairlap.cli.manual import manual_pages
from fairlap.errors import InvalidRequest

PAGES = dict(manual_pages(cli, "1.0"))


def commands_of(ctx: click.Context) -> list[click.Context]:
    found = [ctx]
    if isinstance(ctx.command, click.Group):
        for name in ctx.command.list_commands(ctx):
            command = ctx.command.get_command(ctx, name)
            assert command is not None
            found += commands_of(click.Context(command, info_name=name, parent=ctx))
    return found


@pytest.mark.parametrize("ctx", commands_of(click.Context(cli, info_name="fairlap")), ids=lambda ctx: ctx.command_path)
def test_each_command_has_a_page_with_all_its_options(ctx: click.Context) -> None:
    page = PAGES[f"{ctx.command_path.replace(' ', '-')}.1"]
    options = [each for each in ctx.command.get_params(ctx) if isinstance(each, click.Option)]
    for name in (name for each in options for name in each.opts):
        assert re.search(rf"^\.B .*{re.escape(name.replace('-', chr(92) + '-'))}", page, re.MULTILINE), name
    assert not re.search(r"(?<!\\)-", page.split(".SH SYNOPSIS", 1)[1])  # roff would make another sign of it


def test_pages_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "share" / "man1"
    assert invoke("manual", str(folder)).exit_code == 0
    assert {each.name for each in folder.iterdir()} == set(PAGES)
    (tmp_path / "file").write_text("")
    done = invoke("manual", str(tmp_path / "file" / "man1"))
    assert isinstance(done.exception, InvalidRequest)
    assert done.exception.code == "E_FILE"


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_groff_renders_every_page_without_a_warning(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    files = [str(each) for each in tmp_path.iterdir()]
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", *files], capture_output=True, text=True)
    assert done.stderr == ""
