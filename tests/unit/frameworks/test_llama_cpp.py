"""llama.cpp as cyllama has it, which is a stand-in here: what is read, what is chosen, and what is reported of it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.frameworks.contract import Contestant, Settings, Unsupported
from fairlap.frameworks.runtimes.llama_cpp import LlamaCpp
from fairlap.models.sources.gguf_files.gguf_models import GgufOnDisk
from runtimes_on_fakes import CELLS, HEAD, HEADS, LAYERS, RELEASE, VERSION, answer_to, install_cyllama, work_of

PROMPTS, HANDED = [[1, 2, 3, 4], [1, 2, 7, 5]], [[3, 1], [9, 8]]


def prepared(types: tuple[str, ...] = (), prompts: Any = PROMPTS, handed: Any = HANDED, **options: str) -> Contestant:
    work = work_of(prompts, handed, GgufOnDisk(Path("/model.gguf"), types))
    return LlamaCpp().prepare(work, Settings(3, options=options), lambda _: nullcontext())


def answered(contestant: Contestant, prompts: Any, handed: Any = HANDED) -> list[list[int]]:
    work = work_of(prompts, handed, None)
    tokens: list[list[int]] = contestant.outputs(contestant.bind(work.inputs)())["chosen_tokens"].tolist()
    return tokens


def test_each_prompt_is_answered_after_the_tokens_that_are_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, contestant = install_cyllama(tmp_path, monkeypatch), prepared()
    [context] = made
    right = [answer_to(prompt, 3, handed) for prompt, handed in zip(PROMPTS, HANDED, strict=True)]
    assert answered(contestant, PROMPTS) == right
    assert answered(contestant, PROMPTS) == right  # nothing is left of the answer before
    assert context.reads == 2 * [8, 2, 2]
    assert context.params.n_threads == context.params.n_threads_batch == 3
    assert (context.params.n_seq_max, context.params.n_ctx) == (2, 2 * 6)


def test_a_kept_beginning_is_not_read_again_and_changes_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = install_cyllama(tmp_path, monkeypatch)
    contestant = prepared(prefix="kept")
    other = [[1, 2, 3, 9], [1, 2, 7, 8]]
    assert answered(contestant, PROMPTS) == [answer_to(*each) for each in zip(PROMPTS, (3, 3), HANDED, strict=True)]
    assert answered(contestant, other) == [answer_to(*each) for each in zip(other, (3, 3), HANDED, strict=True)]
    assert made[-1].reads == [8, 2, 2, 2, 2, 2]
    assert contestant.in_force["prefix"]


def test_a_file_in_float32_has_a_cache_in_float32_and_one_in_few_bits_what_llama_cpp_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = install_cyllama(tmp_path, monkeypatch)
    plain, rounded = prepared(), prepared(("Q4_0",))
    assert [(each.params.type_k, each.params.type_v) for each in made] == [(0, 0), (1, 1)]
    assert (plain.in_force["precision"], plain.in_force["threads"]) == ("fp32", "3")
    assert rounded.in_force["precision"].startswith("unknown")
    codes = [[notice.code for notice in each.notices()] for each in (plain, rounded) if each.notices]
    assert codes == [["W_TOKENS_ALONE"], ["W_TOKENS_ALONE", "W_FILE_PRECISION"]]
    assert plain.cache_bytes is not None
    assert rounded.cache_bytes is not None
    assert plain.cache_bytes() == 2 * rounded.cache_bytes() == 2 * CELLS * LAYERS * HEADS * HEAD * 4


def test_its_version_is_the_packages_and_the_release_of_llama_cpp_is_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_cyllama(tmp_path, monkeypatch)
    adapter = LlamaCpp()
    work = work_of(PROMPTS, HANDED, GgufOnDisk(Path("/model.gguf"), ()))
    assert adapter.prepare(work, Settings(1), lambda _: nullcontext()).in_force["llama.cpp"] == RELEASE
    assert adapter.version() == VERSION
    (tmp_path / "build_config.json").unlink()
    assert adapter.prepare(work, Settings(1), lambda _: nullcontext()).in_force["llama.cpp"].startswith("unknown")


@pytest.mark.parametrize(
    "changed",
    [
        {"package": "fairlap.bench_models.gpt2_generate"},
        {"spec": SimpleNamespace(continuation="")},
        {"precision": "bf16"},
    ],
)
def test_all_but_gguf_files_that_generate_is_refused(changed: dict[str, Any]) -> None:
    work = work_of(PROMPTS, HANDED, None, **changed)
    with pytest.raises(Unsupported):
        LlamaCpp().prepare(work, Settings(1), lambda _: nullcontext())
