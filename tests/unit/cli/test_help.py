"""What explains the commands: help that fits a screen, manual pages, completions in a shell, codes of errors."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import fairlap
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result
from command_line import invoke, output
from fairlap.cli import cli
from fairlap.cli.help import RACE_SECTIONS, Command
from fairlap.cli.manual import manual_pages
from fairlap.cli.output import print_error
from fairlap.errors import InvalidRequest, NotWritten
from fairlap.explanations import explanations
from fairlap.launch import environments as envs
from fairlap.store.store import open_store
from fairlap.verdict import Verdict
from runs_in_store import keep_whole
from saved_runs import saved_run

CONTEXT = click.Context(cli, info_name="fairlap")
COMMANDS = {name: command for name in cli.list_commands(CONTEXT) if (command := cli.get_command(CONTEXT, name))}
LEAVES = [name for name, command in COMMANDS.items() if not isinstance(command, click.Group)]


def options_of(name: str) -> list[click.Option]:
    return [each for each in COMMANDS[name].params if isinstance(each, click.Option)]


def command_lines(text: str) -> list[str]:
    found = [line[line.index("fairlap ") :] for line in text.splitlines() if "  fairlap " in f"  {line}"]
    return [line for line in found if not line.endswith("difference is real.")]


def is_understood(line: str) -> None:
    _, name, *arguments = shlex.split(line)
    COMMANDS[name].make_context(f"fairlap {name}", arguments)


@pytest.mark.parametrize("name", LEAVES)
def test_the_essentials_fit_a_screen_and_hold_an_example(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, Command)
    lines = output(name, "-h").splitlines()
    assert len(lines) <= 40
    assert any(line.startswith(f"  fairlap {name}") for line in lines)


@pytest.mark.parametrize("name", LEAVES)
def test_each_option_is_one_line_of_a_hundred_characters_in_the_whole_help(name: str) -> None:
    lines = output(name, "--help").splitlines()
    for option in options_of(name):
        assert option.help
        shortest = min(option.opts, key=len)
        [line] = [
            each for each in lines if each.startswith((f"  {shortest} ", f"  {shortest}, ")) and option.help in each
        ]
        assert len(line) <= 100


@pytest.mark.parametrize("name", LEAVES)
def test_every_example_of_a_command_is_understood(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, Command)
    examples = command_lines(command.examples)
    assert examples
    for line in examples:
        is_understood(line)


def test_every_section_holds_options_of_some_command_and_no_option_is_in_two() -> None:
    named = [option for names in RACE_SECTIONS.values() for option in names.split()]
    offered = {each.removeprefix("--") for name in LEAVES for option in options_of(name) for each in option.opts}
    assert len(named) == len(set(named))
    assert set(named) - {"h", "help"} <= offered


def test_the_first_screen_answers_what_people_come_for() -> None:
    shown = output()
    lines = command_lines(shown)
    assert len(shown.splitlines()) <= 24
    assert len(lines) >= 5
    for line in lines:
        is_understood(line)


@pytest.mark.parametrize(
    ("typed", "meant"), [("comapre", "compare"), ("laod", "load"), ("pull-requets", "pull-request")]
)
def test_a_mistyped_command_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    refused = invoke(typed)
    assert refused.exit_code == 2
    assert f"did you mean {meant}?" in refused.stderr


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
    assert isinstance(done.exception, NotWritten)
    assert done.exception.code == "E_FILE"


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_groff_renders_every_page_without_a_warning(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    files = [str(each) for each in tmp_path.iterdir()]
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", *files], capture_output=True, text=True)
    assert done.stderr == ""


def offered(*words: str) -> list[str]:
    *before, typed = words
    return [each.value for each in ShellComplete(cli, {}, "fairlap", "_X").get_completions(list(before), typed)]


def test_models_and_files_are_offered_to_race() -> None:
    assert offered("compare", "ml") == ["mlp", "mlp_loss", "ml"]  # the shell completes the last one as a file
    assert offered("self-test", "conv") == ["conv2d", "convnet", "conv"]


def test_contestants_are_offered_with_their_variants_after_a_comma_too() -> None:
    assert offered("compare", "mlp", "--on", "tens") == ["tensorflow", "tensorflow-probability", "tensorrt"]
    assert "torch,jax" in offered("load", "mlp", "--on", "torch,")
    assert "jax,torch:compile" in offered("compare", "mlp", "--on", "jax,torch:")
    assert offered("compare", "mlp", "--on", "nothing:") == []


def test_versions_are_offered_that_have_an_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = [envs.Environment("k", tmp_path, (f"torch=={version}",), "2026-01-01") for version in ("2.12.0", "2.11.0")]
    monkeypatch.setattr(envs, "environments", lambda: made)
    assert offered("compare", "mlp", "--on", "torch==") == ["torch==2.11.0", "torch==2.12.0"]
    assert offered("compare", "mlp", "--on", "python==") == []


def test_stored_runs_are_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    assert "last" not in offered("show", "")
    with open_store() as store:
        run = keep_whole(store, saved_run({"torch": 1e6, "jax": 2e6}))
    assert offered("show", "")[:2] == ["last", run]
    assert run in offered("diff", "last", run[:4])
    assert offered("compare", "--resume", "la") == ["last"]


def test_choices_are_offered() -> None:
    assert offered("compare", "mlp", "--mode", "infer,g") == ["infer,grad"]
    assert offered("compare", "mlp", "--conditions", "as") == ["as-found"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_fairlap(shell: str) -> None:
    assert "_FAIRLAP_COMPLETE" in output("completion", shell)
    assert invoke("completion", "cmd").exit_code == 2


PACKAGE = Path(fairlap.__file__).parent


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["explain", *arguments])


@pytest.mark.parametrize(("name", "title"), [("compare", "Training, with --mode train:"), ("self-test", "Training:")])
def test_a_section_names_an_option_only_where_there_is_one(name: str, title: str) -> None:
    printed = CliRunner().invoke(cli, [name, "--help"]).output
    assert [line for line in printed.splitlines() if line.startswith("Training")] == [title]


def test_every_code_explained_ends_with_what_to_do() -> None:
    shown = explain("E_STORE_FULL")
    assert "\nWhat to do: " in shown.output
    assert json.loads(explain("E_STORE_FULL", "--json").output)["what_to_do"].startswith("Free some space")


def test_every_code_in_the_package_has_a_section_and_every_section_a_code() -> None:
    sources = [file.read_text() for file in PACKAGE.rglob("*.py")]
    used = {code for text in sources for code in re.findall(r"[\"'`]([EW]_[A-Z0-9_]+)[\"'`]", text)}
    known = explanations()
    assert used <= set(known)
    assert {code for code in set(known) - used if code.startswith("E_")} == set()
    assert list(known) == sorted(known)
    assert all(len(text) > 60 for text in known.values())


def test_a_code_is_explained_also_in_brackets_and_small_letters() -> None:
    assert explain("e_request").output == explain("[E_REQUEST]").output
    assert json.loads(explain("E_REQUEST", "--json").output)["text"] == explanations()["E_REQUEST"]


@pytest.mark.parametrize("word", ["verdict", "faster", "Slower", "equivalent", "claim", "fastest"])
def test_the_words_of_a_verdict_are_explained(word: str) -> None:
    found = json.loads(explain(word, "--json").output)
    assert found["code"] == "VERDICT"
    assert all(each.value in found["text"].lower() for each in Verdict)
    assert "fairlap rerun" in found["what_to_do"]


def test_without_a_code_all_are_listed() -> None:
    assert [line.split()[0] for line in explain().output.splitlines()] == list(explanations())


def test_an_unknown_code_is_refused_with_the_nearest() -> None:
    refused = explain("E_REQEST").exception
    assert isinstance(refused, InvalidRequest)
    assert "E_REQUEST" in str(refused)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "code", "lines"),
    [(Terminal, "E_STORE_FULL", 2), (Terminal, "E_REQUEST", 1), (io.StringIO, "E_STORE_FULL", 1)],
)
def test_an_error_on_a_terminal_points_to_what_to_do(
    stream: type[io.StringIO], code: str, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = stream()
    monkeypatch.setattr(sys, "stderr", printed)
    print_error("the disk is full", code)
    shown = printed.getvalue().splitlines()
    assert shown[0].endswith(f"[{code}]")
    assert len(shown) == lines
    assert all(f"fairlap explain {code}" in line for line in shown[1:])
