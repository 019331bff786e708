"""Real servers and models without one answer the same prompts with the same tokens, and race."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fairlap.request.names import contestant_named
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.scenarios.streams.answers import answer_in
from fairlap.scenarios.streams.clients.client import Certificates, StreamClient
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.race.started_servers import new_log
from fairlap.scenarios.streams.servers import stream_server
from fairlap.scenarios.streams.started.started_server import StartedServer
from framework_python import skip_unless_available
from machine_marks import needs, needs_proc
from model_for_servers import genai_folder, gguf_with_tokenizer, model_folder
from stream_races import codes, raced_by_name

needs("torch", "transformers", "httpx", "tokenizers")

pytestmark = [needs_proc, pytest.mark.slow, pytest.mark.timeout(900)]  # a race starts up to nine servers

TOKENS = 12
TEXTS = ["Once upon a time", "the other one", "Hello, world!", "in an inn"]
LLAMA_SERVER = "llama-server"
LITSERVE_PROGRAM = Path(__file__).parents[1] / "support" / "litserve_program.py"
NEEDS_SERVE = pytest.mark.skipif(find_spec("openai") is None, reason="needs transformers[serving]")
NEEDS_LITSERVE = pytest.mark.skipif(find_spec("litserve") is None, reason="needs litserve")
NEEDS_LLAMA_CPP = pytest.mark.skipif(
    find_spec("llama_cpp") is None or find_spec("sse_starlette") is None,
    reason="needs llama-cpp-python[server], which pip compiles",
)
# What is held of prompts, which is in float16 by default. More threads than have a core spin while they wait.
IN_FLOAT32 = "ready_within=10m:args=--type_k 0 --type_v 0 --n_threads 1 --n_threads_batch 1"
NEEDS_LLAMA = pytest.mark.skipif(shutil.which(LLAMA_SERVER) is None, reason=f"needs {LLAMA_SERVER} of llama.cpp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_folder(tmp_path_factory.mktemp("served") / "m")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


def generated(folder: Path, texts: list[str]) -> list[str]:
    """Let transformers' own ``generate`` answer greedily."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
    answers = []
    for text in texts:
        ids = tokenizer(text, return_tensors="pt").input_ids
        with torch.inference_mode():
            found = model.generate(ids, max_new_tokens=TOKENS, do_sample=False, pad_token_id=0)
        answers.append(tokenizer.decode(found[0, ids.shape[1] :]))
    return answers


def answers_of(name: str) -> Iterator[tuple[str, int, str]]:
    """Start it, and ask it as a load does: the text, the tokens and the finish of each answer."""
    server = stream_server(contestant_named(name), chat=False, remote=False)
    started = StartedServer(server, dict(os.environ), new_log())
    try:
        started.wait_until_ready()
        client = StreamClient(started.server, Certificates().context(), TOKENS)
        for text in TEXTS:
            body = started.server.body(Prompt(prompt=text), TOKENS, started.server.protocol.fields[0])
            found = answer_in(client.ask(body), started.server)
            assert found.failure is None, found.failure
            yield found.text, found.tokens, found.finish
        client.close()
    finally:
        started.end()


def test_transformers_without_a_server_answers_as_its_generate_does(folder: Path) -> None:
    found = list(answers_of(f"transformers:model={folder}"))
    assert [text for text, _, _ in found] == generated(folder, TEXTS)
    assert {(tokens, finish) for _, tokens, finish in found} == {(TOKENS, "length")}


def raced(folder: Path, *names: str, chats: bool = False, **how: Any) -> Results:
    prompts = folder.parent / "prompts.jsonl"
    asked = [{"messages": [{"role": "user", "content": text}]} if chats else {"prompt": text} for text in TEXTS]
    prompts.write_text("".join(f"{json.dumps(each)}\n" for each in asked))
    how = {"rate": None, "concurrency": 1, "trial": 1.0, "tokens": TOKENS, **how}
    return raced_by_name(prompts, *names, blocks=2, **how)


def shares_of(found: Results) -> list[float]:
    """Of answers that are those of the first contestant."""
    name = "identical_answers_share"
    return [row.scenario_figures[name].value for row in found.rows if name in row.scenario_figures]


def is_whole(row: Row) -> bool:
    return row.outcome == "finished" and row.judged is not None and row.peak_memory_bytes is not None


@NEEDS_SERVE
def test_a_server_and_its_framework_alone_race_with_the_same_answers(folder: Path) -> None:
    alone, server = f"transformers:model={folder}", f"serve:transformers:model={folder}"
    found = raced(folder, alone, server)
    assert {row.contestant for row in found.rows} == {alone, server}
    for row in found.rows:
        assert is_whole(row), (row.code, row.warnings)
        assert "W_OTHER_ANSWERS" not in codes(row)
        assert row.time_to_first_token_ns is not None
        assert row.version == version("transformers")


@NEEDS_SERVE
@NEEDS_LITSERVE
def test_two_real_servers_and_the_model_alone_race_with_the_same_answers_to_chats(folder: Path) -> None:
    words = shlex.join([sys.executable, str(LITSERVE_PROGRAM), str(folder), "{port}"])
    lit = f'serve:command="{words}":model=m:health=/health'
    names = [lit, f"serve:transformers:model={folder}", f"transformers:model={folder}"]
    found = raced(folder, *names, chats=True)
    assert all(map(is_whole, found.rows)), [(row.code, row.warnings) for row in found.rows]
    assert shares_of(found) == [1.0, 1.0]


@NEEDS_SERVE
@NEEDS_LLAMA
def test_two_real_servers_race_with_the_same_tokens(folder: Path) -> None:
    pytest.importorskip("gguf", reason="`make test` installs it and runs this")
    file = gguf_with_tokenizer(folder, folder.parent / "m.gguf")
    command = f"{LLAMA_SERVER} -m {file} --host 127.0.0.1 --port {{port}} --no-webui"
    llama, server = f'serve:command="{command}":model=m:health=/health', f"serve:transformers:model={folder}"
    found = raced(folder, llama, server)
    assert all(map(is_whole, found.rows)), [(row.code, row.warnings) for row in found.rows]
    assert shares_of(found) == [1.0]


@NEEDS_LLAMA_CPP
def test_llama_cpp_pythons_server_answers_as_generate_does(folder: Path) -> None:
    pytest.importorskip("gguf", reason="`make test` installs it and runs this")
    file = gguf_with_tokenizer(folder, folder.parent / "alone.gguf")
    found = list(answers_of(f"serve:llama-cpp:model={file}:{IN_FLOAT32}"))
    assert [text for text, _, _ in found] == generated(folder, TEXTS)
    assert {(tokens, finish) for _, tokens, finish in found} == {(TOKENS, "length")}


@NEEDS_SERVE
@NEEDS_LLAMA_CPP
def test_llama_cpp_pythons_server_races_with_the_same_tokens_and_fewer_in_fewer_bits(folder: Path) -> None:
    pytest.importorskip("gguf", reason="`make test` installs it and runs this")
    kinds = ("F32", "Q8_0", "Q4_0")
    files = [gguf_with_tokenizer(folder, folder.parent / f"{kind}.gguf", kind) for kind in kinds]
    alone = f"serve:transformers:model={folder}:ready_within=10m"
    names = [alone, *(f"serve:llama-cpp:model={each}:{IN_FLOAT32}" for each in files)]
    found = raced(folder, *names)
    rows = {row.contestant: row for row in found.rows}
    served, same, *fewer = (rows[name] for name in names)
    assert all(map(is_whole, rows.values())), [(row.code, row.warnings) for row in found.rows]
    assert [rows[name].settings["weights"] for name in names] == ["F32", *kinds]
    assert same.scenario_figures["identical_answers_share"].value == 1.0
    assert "W_OTHER_ANSWERS" not in codes(served) | codes(same)
    assert "W_OTHER_ANSWERS" in codes(fewer[-1])
    shares = [row.scenario_figures["identical_text_share"].value for row in (same, *fewer)]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 1.0


def test_onnxruntime_genai_without_a_server_answers_as_generate_does(folder: Path, tmp_path: Path) -> None:
    skip_unless_available("onnxruntime-genai")
    found = list(answers_of(f"onnxruntime-genai:model={genai_folder(folder, tmp_path / 'genai')}"))
    assert [text for text, _, _ in found] == generated(folder, TEXTS)
    assert {(tokens, finish) for _, tokens, finish in found} == {(TOKENS, "length")}
