"""A started server that fails is named with its log, and the others go on."""

from __future__ import annotations

import socket
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from fairlap.results.results import Results
from fairlap.scenarios.streams.race import started_servers
from machine_marks import needs, needs_proc
from started_by_fairlap import HOW, LAST_WORDS, are_gone, pids_in, planted, row_named
from stream_races import file_of_prompts, raced_by_name, without_client_floor

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")

pytestmark = needs_proc


FAULTY: dict[str, tuple[list[Any], str, str]] = {
    "is never ready": (["--fault", "never"], ":ready_within=400ms", "E_SERVER_START"),
    "does not answer": (["--fault", "silent"], ":ready_within=400ms", "E_SERVER_START"),
    "is ready too late": (["--ready-after", 1000], ":ready_within=400ms", "E_SERVER_START"),
    "dies at once": (["--fault", "dies"], "", "E_SERVER_START"),
    "dies at its fourth answer": (["--fault", "midway", "--after", 3], "", "E_SERVER_ENDED"),
    "dies later": (["--fault", "midway", "--after", 35], ":restarts=off", "E_SERVER_ENDED"),
}


@pytest.fixture(scope="module")
def found_with_faulty_ones(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, dict[str, str], Path]:
    """Race all of them in one race with an honest one, and return it, their names, and the folder of what they leave.

    Two of them would have to be waited for for a quarter of an hour.
    """
    folder = tmp_path_factory.mktemp("faulty")
    names = {
        what: planted(*options, "--pids", folder / "pids", more=more) for what, (options, more, _) in FAULTY.items()
    }
    names[""] = planted("--pids", folder / "pids")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(folder))
        without_client_floor(patch)
        return raced_by_name(file_of_prompts(folder), *names.values(), **HOW, blocks=3), names, folder


@pytest.mark.parametrize("what", FAULTY)
def test_one_that_fails_is_named_with_its_log_and_the_others_go_on(
    what: str, found_with_faulty_ones: tuple[Results, dict[str, str], Path]
) -> None:
    found, names, folder = found_with_faulty_ones
    _, more, code = FAULTY[what]
    row = row_named(found, names[what])
    assert (row.outcome, row.code, row.place) == ("failed", code, None)
    message = next(each.message for each in found.run.processes if each.contestant == names[what] and each.message)
    assert str(folder / "servers") in message
    assert len(message.splitlines()) == 1
    assert ("0.4 s" in message) == ("ready_within" in more)
    assert (LAST_WORDS in message) == (what == "dies at once")
    assert (row_named(found, names[""]).outcome, row_named(found, names[""]).processes_finished) == ("finished", 3)
    assert are_gone(pids_in(folder / "pids"), 0.0)


def test_one_that_cannot_be_started_again_fails_and_the_other_goes_on(prompts: Path, tmp_path: Path) -> None:
    honest, once = planted(), planted("--fault", "once", "--pids", tmp_path / "once")
    found = raced_by_name(prompts, once, honest, **HOW, blocks=3)
    assert row_named(found, once).code == "E_SERVER_START"
    assert [each.outcome for each in found.run.processes if each.contestant == once] == ["finished", "failed", "failed"]
    assert row_named(found, honest).processes_finished == 3


def test_a_program_that_is_not_there_fails_alone(prompts: Path) -> None:
    honest, missing = planted(), "serve:command=no-such-program-here {port}:model=m"
    found = raced_by_name(prompts, missing, honest, **HOW)
    assert row_named(found, missing).code == "E_NOT_INSTALLED"
    assert row_named(found, honest).outcome == "finished"


@pytest.mark.slow_but("serve:llama-cpp-llama", "onnxruntime-genai")
@pytest.mark.parametrize(
    ("name", "missing", "install"),
    [
        ("serve:llama-cpp", "llama_cpp", "pip install 'llama-cpp-python[server]'"),
        ("serve:llama-cpp", "sse_starlette", "pip install 'llama-cpp-python[server]'"),
        ("serve:transformers", "transformers", "pip install 'transformers[serving]' torch"),
        ("transformers", "torch", "pip install transformers torch"),
        ("onnxruntime-genai", "onnxruntime_genai", "pip install onnxruntime-genai"),
    ],
)
def test_what_is_not_installed_is_named_with_the_line_that_installs_it(
    name: str, missing: str, install: str, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.gguf" if "llama" in name else tmp_path
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    is_here = ModuleSpec("installed", None)
    monkeypatch.setattr(started_servers, "find_spec", lambda module: None if module == missing else is_here)
    lacking, honest = f"{name}:model={model}", planted()
    found = raced_by_name(prompts, lacking, honest, **HOW)
    assert row_named(found, lacking).code == "E_NOT_INSTALLED"
    message = next(each.message for each in found.run.processes if each.contestant == lacking)
    assert missing in message
    assert message.endswith(install)
    assert row_named(found, honest).outcome == "finished"


def test_another_program_on_its_port_does_not_answer_for_it(prompts: Path, pids: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f":url=http://127.0.0.1:{other.getsockname()[1]}/v1"
        name = planted("--pids", pids, more=url)
        assert row_named(raced_by_name(prompts, name, **HOW), name).code == "E_SERVER_START"
    assert not pids.exists()
