"""A model in a process answers prompts in order, token by token, and what goes wrong is the answer of one alone."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import refusal
from fairlap.request.names import contestant_named
from fairlap.scenarios.streams.answers import Answer, answer_in
from fairlap.scenarios.streams.clients.client import Certificates, RawAnswer, StreamClient
from fairlap.scenarios.streams.in_process.program import ProgramServer
from fairlap.scenarios.streams.in_process.token_model import TokenModel
from fairlap.scenarios.streams.servers import StreamServer, stream_server
from fairlap.scenarios.streams.started.server_start import start_of
from machine_marks import needs
from stream_races import file_of_prompts

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")

END, TOKEN_S = 7, 0.002


class Counting(TokenModel):
    """Its tokens count on from the length of the prompt, modulo 10; 7 is the end."""

    ends = frozenset([END])

    def __init__(self) -> None:
        self.prompts: list[int] = []
        self.at_once = self.chosen = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.may_choose: threading.Semaphore | None = None  # one token for each time it is released

    @classmethod
    def load(cls, folder: str, device: str) -> Counting:
        return cls()

    def tokens_of(self, prompt: str | list[dict[str, Any]]) -> list[int]:
        text = prompt if isinstance(prompt, str) else prompt[-1]["content"]
        return [int(each) for each in text.split()]

    def following(self, prompt: list[int], most: int) -> Iterator[int]:
        self.at_once += 1
        try:
            self.may_go_on.wait()
            assert self.at_once == 1
            self.prompts.append(prompt[-1])
            if prompt[-1] == 99:
                raise RuntimeError("too long for this model")
            for place in range(most):
                time.sleep(TOKEN_S)
                if self.may_choose is not None:
                    self.may_choose.acquire()
                self.chosen += 1
                yield (prompt[-1] + 1 + place) % 10
        finally:
            self.at_once -= 1

    def decoder(self) -> Callable[[int], str]:
        return lambda token: "" if token == END else f" {token}"


@pytest.fixture
def model() -> Counting:
    return Counting()


@pytest.fixture
def program(model: Counting) -> Iterator[ProgramServer]:
    with ProgramServer(0) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        threading.Thread(target=found.answer_all, args=(model,), daemon=True).start()
        yield found
        found.shutdown()


def at(program: ProgramServer, *, chat: bool = False) -> StreamServer:
    name = f"http://127.0.0.1:{program.server_address[1]}/v1:model=m:timeout=5s"
    return stream_server(contestant_named(name), chat=chat, remote=False)


def client_of(server: StreamServer) -> StreamClient:
    return StreamClient(server, Certificates().context(), 64)


def body(prompt: Any, tokens: int, *, ignore_eos: bool = True) -> bytes:
    said = {"messages": prompt} if isinstance(prompt, list) else {"prompt": prompt}
    return json.dumps(
        {**said, "max_tokens": tokens, "temperature": 0, "stream": True, "ignore_eos": ignore_eos}
    ).encode()


def asked(program: ProgramServer, *of_body: Any, **more: Any) -> tuple[Answer, RawAnswer]:
    server = at(program, chat=isinstance(of_body[0], list))
    client = client_of(server)
    raw = client.ask(body(*of_body, **more))
    client.close()
    return answer_in(raw, server), raw


def test_an_answer_has_its_tokens_and_why_it_ended(program: ProgramServer) -> None:
    answer, raw = asked(program, "1 2 3", 5)
    assert (answer.text, answer.tokens, answer.prompt_tokens) == (" 4 5 6 8", 5, 3)  # the end of a text has none
    assert answer.counted_by == "events' usage"
    assert answer.finish == "length"
    assert len(answer.came_ns) == 5
    assert raw.is_done


def test_a_token_is_sent_before_the_next_one_is_chosen(program: ProgramServer, model: Counting) -> None:
    model.may_choose = threading.Semaphore(0)
    with socket.create_connection(("127.0.0.1", program.server_address[1])) as connection:
        data, came = body("1 2 3", 4), b""
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
        for count in range(1, 5):
            model.may_choose.release()
            while came.count(b"completion_tokens") < count:
                came += connection.recv(65536)
            assert came.count(b"completion_tokens") == count


def test_an_answer_ends_with_the_text_unless_its_length_is_forced(program: ProgramServer) -> None:
    answer, _ = asked(program, "1 2 3", 5, ignore_eos=False)
    assert (answer.text, answer.tokens, answer.finish) == (" 4 5 6", 4, "stop")


def test_a_chat_is_read_by_the_models_template(program: ProgramServer) -> None:
    answer, _ = asked(program, [{"role": "user", "content": "3"}], 2)
    assert (answer.text, answer.tokens) == (" 4 5", 2)


def test_what_the_framework_raises_is_the_answer_of_one_alone(program: ProgramServer) -> None:
    failed, _ = asked(program, "99", 5)
    assert failed.failure is not None
    assert failed.failure.code == "E_STREAM_EVENT"
    assert "too long for this model" in failed.failure.text
    assert asked(program, "1", 2)[0].text == " 2 3"


def test_prompts_wait_for_each_other_in_the_order_in_which_they_came(program: ProgramServer, model: Counting) -> None:
    server = at(program)
    clients = [client_of(server) for _ in range(5)]
    answers: dict[int, str] = {}

    def ask(number: int) -> None:
        answers[number] = answer_in(clients[number].ask(body(str(number), 5)), server).text

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
    model.may_go_on.clear()
    for number, thread in enumerate(threads):
        clients[number].connect()
        thread.start()
        while model.at_once + program.requests.qsize() <= number:
            time.sleep(0.001)
    model.may_go_on.set()
    for thread in threads:
        thread.join()
    assert model.prompts == [0, 1, 2, 3, 4]
    assert answers[0] == " 1 2 3 4 5"
    for client in clients:
        client.close()


def test_a_client_that_goes_away_does_not_keep_others_waiting(program: ProgramServer, model: Counting) -> None:
    with socket.create_connection(("127.0.0.1", program.server_address[1])) as left:
        data = body("1", 1000)
        left.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
        assert left.recv(10)
    assert asked(program, "1", 2)[0].tokens == 2
    assert model.chosen < 1000 + 2  # no answer was computed to its end for nobody


def test_other_requests_than_of_a_load_are_refused(program: ProgramServer) -> None:
    client = client_of(at(program))
    raw = client.ask(json.dumps({"prompt": "1", "max_tokens": 1, "temperature": 1, "stream": True}).encode())
    assert raw.status == 400
    client.close()


def test_a_framework_with_a_model_is_started_here_or_in_an_environment_of_its_version(tmp_path: Path) -> None:
    here, there = (
        start_of(contestant_named(f"transformers{version}:model={tmp_path}")) for version in ("", "==5.23.0")
    )
    assert here.is_in_process
    assert (here.packages, there.packages[0]) == ((), "transformers==5.23.0")
    assert here.words[3] == "fairlap.scenarios.streams.in_process.program"
    assert str(tmp_path) in here.words


@pytest.mark.parametrize(
    "text", ["transformers", "transformers:model=/nowhere", "transformers:model=.:threads=2", "torch:model=."]
)
def test_what_is_no_model_in_a_process_is_refused(text: str, tmp_path: Path) -> None:
    options = ("--tokens", 4, "--rate", 5)
    assert refusal("load", file_of_prompts(tmp_path), "--on", text, *options).code == "E_CONTESTANT"
