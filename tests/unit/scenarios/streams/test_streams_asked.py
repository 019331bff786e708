"""What is asked is checked before a packet leaves, and credentials are in no name, error or document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import refusal
from fairlap.errors import InvalidRequest
from fairlap.request.names import contestant_named
from fairlap.scenarios.streams.prompts import Prompt, read_prompts
from fairlap.scenarios.streams.servers import StreamServer, credential_of, stream_server
from no_packets import refuse_packets

SERVER = "http://127.0.0.1:8000/v1:model=m"
SECRET = "plain-words-that-no-pattern-knows"


@pytest.fixture(autouse=True)
def no_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_packets(monkeypatch)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "Once upon", "id": 3}\n\n{"prompt": "Hello"}\n')
    return path


def test_prompts_may_begin_with_a_byte_order_mark(prompts: Path) -> None:
    plain = read_prompts(prompts)
    prompts.write_bytes(b"\xef\xbb\xbf" + prompts.read_bytes())
    assert read_prompts(prompts) == plain
    assert len(plain) == 2


def server(text: str, *, chat: bool = False, remote: bool = False) -> StreamServer:
    return stream_server(contestant_named(text), chat=chat, remote=remote)


def test_an_address_with_its_options_is_a_server() -> None:
    found = server("https://localhost/v1/:model=org/llama:8b:api=chat:timeout=5s")
    assert (found.model, found.api, found.timeout_s) == ("org/llama:8b", "chat", 5.0)
    assert found.address is not None
    assert (found.address.scheme, found.address.port, found.address.path) == ("https", 443, "/v1/")
    assert server(SERVER).api == "completions"
    assert server(SERVER, chat=True).api == "chat"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("torch", "E_CONTESTANT"),
        ("http://127.0.0.1:8000/v1", "E_CONTESTANT"),
        (f"{SERVER}:api=soap", "E_CONTESTANT"),
        (f"{SERVER}:tensors=json", "E_CONTESTANT"),
        (f"{SERVER}:key_from=9", "E_CONTESTANT"),
        (f"{SERVER}:key_from=VARIABLE_THAT_IS_NOT_SET", "E_CONTESTANT"),
        (f"{SERVER}:timeout=soon", "E_REQUEST"),
        ("http://ada:secret@127.0.0.1/v1:model=m", "E_CONTESTANT"),
        ("http://192.0.2.1/v1:model=m", "E_REMOTE"),
    ],
)
def test_what_is_not_a_server_that_streams_is_refused(text: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        server(text)
    assert raised.value.code == code
    assert "secret" not in str(raised.value)


def test_a_credential_is_read_from_its_variable_and_held_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_SERVER", SECRET)
    found = server(f"{SERVER}:key_from=KEY_OF_SERVER")
    assert credential_of(found) == SECRET
    assert SECRET not in repr(found)


def test_a_credential_is_not_sent_in_clear_to_another_machine_nor_with_a_line_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY_OF_SERVER", SECRET)
    for text, value in (("http://192.0.2.1/v1:model=m", SECRET), (SERVER, f"{SECRET}\r\nHost: evil")):
        monkeypatch.setenv("KEY_OF_SERVER", value)
        with pytest.raises(InvalidRequest) as raised:
            server(f"{text}:key_from=KEY_OF_SERVER", remote=True)
        assert raised.value.code == "E_CONTESTANT"
        assert SECRET not in str(raised.value)
    monkeypatch.setenv("KEY_OF_SERVER", SECRET)
    assert server("https://192.0.2.1/v1:model=m:key_from=KEY_OF_SERVER", remote=True).key_from == "KEY_OF_SERVER"


def test_prompts_are_texts_or_chats_and_may_have_other_fields(prompts: Path, tmp_path: Path) -> None:
    assert read_prompts(prompts) == (Prompt(prompt="Once upon"), Prompt(prompt="Hello"))
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"messages": [{"role": "user", "content": "Hi"}]}\n')
    [found] = read_prompts(chat)
    assert found.is_chat
    assert found.beginning_with("7f").messages == ({"role": "user", "content": "7f Hi"},)
    assert Prompt(prompt="Hello").beginning_with("7f") == Prompt(prompt="7f Hello")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "\n",
            "Once upon",
            "{}",
            '{"prompt": ""}',
            '{"prompt": 7}',
            '{"messages": []}',
            "[1]",
            "\xff",
            "[" * 9999,
        ),
        *('{"prompt": "a", "messages": [{}]}', '{"prompt": "a"}\n{"messages": [{"content": "b"}]}'),
    ],
)
def test_what_is_no_file_of_prompts_is_refused_with_its_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(text.encode("latin-1"))
    assert refusal("load", path, "--on", SERVER, "--tokens", 4, "--rate", 5).code == "E_PROMPTS"


def test_a_file_of_prompts_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refusal("load", tmp_path / "no.jsonl", "--on", SERVER, "--tokens", 4, "--rate", 5).code == "E_PROMPTS"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], "E_LOAD"),
        (["--tokens", 4], "E_LOAD"),
        (["--rate", 5], "E_LOAD"),
        (["--tokens", 0, "--rate", 5], "E_LOAD"),
        (["--tokens", 4, "--rate", 0], "E_LOAD"),
        (["--tokens", 4, "--rate", "nan"], "E_LOAD"),
        (["--tokens", 4, "--concurrency", 0], "E_LOAD"),
        (["--tokens", 4, "--concurrency", 257], "E_LOAD"),
        (["--tokens", 4, "--concurrency", 2, "--rate", 5], "E_LOAD"),
        (["--tokens", 4, "--concurrency", 2, "--workers", 5], "E_LOAD"),
        (["--tokens", 1, "--per-token", "5ms"], "E_LOAD"),
        (["--tokens", 4, "--concurrency", 2, "--overload", "40:10s"], "E_LOAD"),
        (["--tokens", 4, "--rate", 50, "--overload", "40:10s"], "E_LOAD"),
        (["--tokens", 4, "--rate", 5, "--overload", "40:10s", "--abort", "5%"], "E_LOAD"),
        (["--tokens", 4, "--first-token", "1s", "--abort", "5%"], "E_LOAD"),
        (["--tokens", 4, "--rate", 5, "--abort", "60%", "--slow-clients", "40%"], "E_LOAD"),
        (["--tokens", 1, "--rate", 5, "--abort", "5%"], "E_LOAD"),
        (["--tokens", 4, "--rate", 5, "--abort", "5"], "E_REQUEST"),
        (["--tokens", 4, "--rate", 5, "--p99", "5ms"], "E_LOAD"),
        (["--tokens", 4, "--rate", 5, "--threads", 2], "E_LOAD"),
        (["--tokens", 4, "--rate", 5, "--resume", "last"], "E_LOAD"),
        (["--tokens", 4, "--rate", 5, "--blocks", 0], "E_REQUEST"),
        (["--tokens", 4, "--rate", 5, "--baseline", "torch"], "E_BASELINE"),
        (["--tokens", 4, "--rate", 5, "--insecure", "--ca", "x"], "E_LOAD"),
        (["--tokens", 4, "--rate", 5, "--ca", "/nowhere/ca.pem"], "E_CERTIFICATE"),
        (["--tokens", 4, "--rate", 5, "-o", "rows.txt"], "E_OUTPUT_FORMAT"),
    ],
)
def test_what_cannot_be_honoured_is_refused(options: list[Any], code: str, prompts: Path) -> None:
    assert refusal("load", prompts, "--on", SERVER, *options).code == code


@pytest.mark.parametrize("name", ["grpc://127.0.0.1:8001:model=m", "own_client:ask"])
def test_slow_clients_need_http(name: str, prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (prompts.parent / "own_client.py").write_text("def ask(prompt, tokens): ...")
    monkeypatch.chdir(prompts.parent)
    options = ("--tokens", 4, "--rate", 5, "--slow-clients", "5%")
    assert refusal("load", prompts, "--on", name, *options).code == "E_LOAD"


@pytest.mark.parametrize("option", ["--tokens 4", "--rate 2", "--per-token 5ms", "--insecure", "--overload 4:1s"])
def test_a_load_on_models_takes_none_of_these_options(option: str) -> None:
    assert refusal("load", "mlp", "--on", "torch", "--p99", "20ms", *option.split()).code == "E_LOAD"
