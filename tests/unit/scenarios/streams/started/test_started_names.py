"""What `serve:` names is checked before anything is started, and what it runs is said of a plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import output, refusal
from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan_reach import reach_of
from fairlap.request.names import Contestants, contestant_named
from fairlap.scenarios.streams.asked import streams_asked
from fairlap.scenarios.streams.race.planned_load import plan_of
from fairlap.scenarios.streams.servers import StreamServer, stream_server
from fairlap.scenarios.streams.started.known_servers import KNOWN
from fairlap.scenarios.streams.started.server_start import ServerStart
from stream_races import file_of_prompts

COMMAND = 'serve:command="run --port {port}":model=m'


def server(text: str) -> StreamServer:
    return stream_server(contestant_named(text), chat=False, remote=False)


def start(text: str) -> ServerStart:
    found = server(text).start
    assert found is not None
    return found


def test_a_list_is_split_at_commas_but_for_those_of_options_and_within_quotes() -> None:
    listed = (
        'torch,serve:transformers==5.24.0,model=./m,device=cuda, serve:command="a --b=1,model=2",url=http://x:1,jax'
    )
    found = Contestants(listed)
    assert [each.text for each in found] == [
        "torch",
        "serve:transformers==5.24.0,model=./m,device=cuda",
        'serve:command="a --b=1,model=2",url=http://x:1',
        "jax",
    ]
    assert (found[1].variant, found[1].version) == ("transformers", "==5.24.0")
    assert dict(found[1].options) == {"model": "./m", "device": "cuda"}
    assert dict(found[2].options) == {"command": "a --b=1,model=2", "url": "http://x:1"}


def test_quotes_that_the_shell_took_away_are_not_needed() -> None:
    plain = contestant_named("serve:command=run --port {port},url=http://127.0.0.1:{port}/v2:model=m")
    quoted = contestant_named('serve:command="run --port {port}":url="http://127.0.0.1:{port}/v2":model="m"')
    assert plain.options == quoted.options


def test_a_command_gets_its_port_model_and_device() -> None:
    found = start("serve:command=\"./run 'two words' {port} {model} {device}\":model=m:device=cuda:1")
    assert found.command(81) == ("./run", "two words", "81", "m", "cuda:1")
    assert found.address(81).text == "127.0.0.1:81"
    assert found.address(81).path == "/v1"
    assert not start('serve:command="./run":model=m:url=http://127.0.0.1:8000/v1').draws_port


def test_a_command_runs_in_an_environment_of_a_release_or_a_wheel() -> None:
    found = start(f"{COMMAND}:with=tiny-server==1.0:find_links=./wheels:python=3.13")
    assert (found.package, found.packages) == ("tiny-server", ("tiny-server==1.0",))
    assert (start(COMMAND).packages, start(COMMAND).restarts) == ((), True)
    assert not start(f"{COMMAND}:restarts=off").restarts


def test_a_named_server_runs_in_an_environment_of_its_version(tmp_path: Path) -> None:
    here, there = (start(f"serve:transformers{each}:model={tmp_path}") for each in ("", "==5.23.0"))
    assert here.packages == ()
    assert there.packages[0] == "transformers[serving]==5.23.0"
    assert str(tmp_path) in there.words
    assert server(f"serve:transformers:model={tmp_path}").model == str(tmp_path)


def test_a_wheel_takes_the_place_of_the_package_that_it_is_of_and_keeps_what_a_server_needs(tmp_path: Path) -> None:
    wheel = "@ file:///w/transformers-5.25.0-py3-none-any.whl#sha256=" + "0" * 64
    packages = KNOWN["transformers"].packages_of
    assert packages("", f"transformers {wheel}") == (f"transformers[serving] {wheel}", "torch==2.13.0")
    assert packages("", f"transformers[x] {wheel}") == (f"transformers[x] {wheel}", "torch==2.13.0")
    assert packages("==5.23.0", "torch==2.12.0") == ("torch==2.12.0", "transformers[serving]==5.23.0")
    of_llama = KNOWN["llama-cpp"].packages_of("", "llama_cpp_python @ file:///w#tree=" + "0" * 64)
    assert of_llama == ("llama_cpp_python[server] @ file:///w#tree=" + "0" * 64,)


def test_llama_cpp_serves_a_file_on_the_cpu_at_its_port_whatever_the_environment_says(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    found = start(f"serve:llama-cpp==0.3.36:model={file}:args=--type_k 0")
    assert found.packages == ("llama-cpp-python[server]==0.3.36",)
    assert found.command(81)[-6:] == ("--port", "81", "--interrupt_requests", "false", "--type_k", "0")
    assert found.own_variables(81) == {"HOST": "127.0.0.1", "PORT": "81"}
    for refused in (f"model={tmp_path}", f"model={file}:device=cuda"):
        with pytest.raises(InvalidRequest) as raised:
            server(f"serve:llama-cpp:{refused}")
        assert raised.value.code == "E_CONTESTANT"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("serve:", "E_CONTESTANT"),
        ("serve:transformers", "E_CONTESTANT"),
        ("serve:transformers:model=/nowhere", "E_CONTESTANT"),
        ("serve:transformers:modell=./m", "E_CONTESTANT"),
        ("serve:transformers:model=.:model=.", "E_CONTESTANT"),
        ("serve:transformers:model=.:command=x", "E_CONTESTANT"),
        ("serve:transformer:model=.", "E_CONTESTANT"),
        ("serve:model=m", "E_CONTESTANT"),
        ("serve:command=", "E_CONTESTANT"),
        ("serve:command=run --port {port}", "E_CONTESTANT"),  # by which name the server knows its model
        ("serve:command=run:model=m", "E_CONTESTANT"),  # where it listens
        (f"{COMMAND}:args=--fast", "E_CONTESTANT"),
        (f"{COMMAND}:python=3.13", "E_CONTESTANT"),
        (f"{COMMAND}:find_links=./wheels", "E_CONTESTANT"),
        (f"{COMMAND}:with=tiny-server", "E_CONTESTANT"),
        (f"{COMMAND}:restarts=never", "E_CONTESTANT"),
        ("serve:command=run {port} 'x:model=m", "E_CONTESTANT"),
        (f"{COMMAND}:url=http://127.0.0.1/{{port}}:model=m", "E_CONTESTANT"),
        (f"{COMMAND}:url=http://192.0.2.1:{{port}}/v1", "E_REMOTE"),
        (f"{COMMAND}:url=https://127.0.0.1:{{port}}/v1", "E_CONTESTANT"),
        (f"{COMMAND}:health=ready", "E_CONTESTANT"),
        (f"{COMMAND}:ready_within=soon", "E_REQUEST"),
        (f"{COMMAND}:ready_within=25h", "E_REQUEST"),
        (f"{COMMAND}:device=npu", "E_REQUEST"),
        (f"{COMMAND}:api=soap", "E_CONTESTANT"),
        (f"{COMMAND}:key_from=VARIABLE_THAT_IS_NOT_SET", "E_CONTESTANT"),
    ],
)
def test_what_cannot_be_started_is_refused(text: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        server(text)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("serve:lama-cpp:model=.", "llama-cpp"),
        ("serve:llama_cpp:model=.", "llama-cpp"),
        ("serve:llama.cpp:model=.", "llama-cpp"),
        ("serve:transformer==5.24.0:model=.", "transformers"),
        ("transformer:model=.", "transformers"),
        ("serv:llama-cpp:model=.", "serve"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(text: str, meant: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        server(text)
    assert f"did you mean {meant}?" in str(raised.value)


def test_a_name_like_none_is_answered_with_how_any_server_is_started() -> None:
    with pytest.raises(InvalidRequest) as raised:
        server("serve:vllm:model=.")
    assert "did you mean" not in str(raised.value)
    assert "serve:command=" in str(raised.value)


def test_it_is_for_files_of_prompts_alone(tmp_path: Path) -> None:
    assert refusal("load", "mlp", "--on", COMMAND, "--p99", "20ms").code
    assert refusal("compare", "mlp", "--on", COMMAND).code


def test_a_plan_reaches_what_it_starts(tmp_path: Path) -> None:
    named = f"serve:transformers==5.23.0:model={tmp_path},transformers==5.22.0:model={tmp_path},{COMMAND}"
    contestants = Contestants(named)
    asked = streams_asked(file_of_prompts(tmp_path), contestants, tokens=4, concurrency=1)
    reach = reach_of(plan_of(asked, contestants, blocks=1))
    assert {"package transformers==5.23.0", "package transformers==5.22.0"} <= {*reach}
    assert any("run --port {port}" in line and str(Path.cwd()) in line for line in reach)
    assert sum(str(tmp_path) in line for line in reach) == 3  # both models, and the prompts


def test_a_dry_run_starts_nothing(tmp_path: Path) -> None:
    name = f'serve:command="touch {tmp_path}/x {{port}}":model=m'
    shown = output("load", file_of_prompts(tmp_path), "--on", name, "--tokens", 4, "--rate", 5, "--dry-run")
    assert "is started" in shown
    assert not (tmp_path / "x").exists()
