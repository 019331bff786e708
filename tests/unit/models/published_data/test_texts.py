"""GLUE's TSV and SQuAD's JSON become tokens by the model's tokenizer; another layout is a line with the file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.published_data.text_tokens import Tokens
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.sources.given_data.reading import given_files, inputs_of, mistyped_inputs
from fairlap.models.sources.inputs import of_tensors
from fairlap.models.spec import Tensor
from fairlap.request.fields.data.corruption import Corruption
from fairlap.request.fields.source import Source

tokenizers = pytest.importorskip("tokenizers", reason="`make test` installs it and runs this")

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "a", "good", "film", "bad", "who", "made", "it", "Ann", "Lee", "."]
ID = {word: number for number, word in enumerate(WORDS)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Put a tokenizer of whole words beside a model, as BERT's sets off texts."""
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(ID, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    special = [("[CLS]", ID["[CLS]"]), ("[SEP]", ID["[SEP]"])]
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special
    )
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "model.onnx"


def source(model: Path, file: Path, **options: object) -> Source:
    return Source("model.onnx", str(model), str(model.parent), inputs=str(file), labels=str(file), **options)  # type: ignore[arg-type]


def read(model: Path, name: str, content: str, **options: object) -> tuple[Tokens, np.ndarray]:
    file = model.parent / name
    file.write_text(content)
    own = source(model, file, **options)
    [tokens] = inputs_of(own)
    assert isinstance(tokens, Tokens)
    return tokens, labels_in(own.labels, ["top1"], own)


def words(ids: np.ndarray) -> str:
    return " ".join(WORDS[number] for number in ids.tolist())


@pytest.mark.parametrize(
    ("content", "first", "labels"),
    [
        ("sentence\tlabel\na good film\t1\nbad\t0\n", "[CLS] a good film [SEP]", [1, 0]),
        ("gj04\t1\t\ta good film\ngj04\t0\t*\tbad\n", "[CLS] a good film [SEP]", [1, 0]),
        (
            "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\ta film\tit\n0\t7\t8\tbad\tit\n",
            "[CLS] a film [SEP] it [SEP]",
            [1, 0],
        ),
        (
            "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\twho\tbad\t0\n1\t3\t4\tit\tit\t1\n",
            "[CLS] who [SEP] bad [SEP]",
            [0, 1],
        ),
        (
            "index\tquestion\tsentence\tlabel\n0\twho made\tit\tentailment\n1\twho\tbad\tnot_entailment\n",
            "[CLS] who made [SEP] it [SEP]",
            [0, 1],
        ),
        (
            "index\tsentence1\tsentence2\tlabel1\tgold_label\n0\ta\tbad\tneutral\tneutral\n1\ta\tit\tx\tcontradiction\n",
            "[CLS] a [SEP] bad [SEP]",
            [1, 2],
        ),
        ("index\tsentence1\tsentence2\tscore\n0\ta\tbad\t2.5\n1\tit\tit\t5\n", "[CLS] a [SEP] bad [SEP]", [2.5, 5.0]),
        ('sentence\tlabel\n"a good\t1\nbad\t0\n', "[CLS] [UNK] a good [SEP]", [1, 0]),  # quotes are text
    ],
)
def test_tasks_of_glue_are_read_as_they_are_published(
    model: Path, content: str, first: str, labels: list[float]
) -> None:
    tokens, found = read(model, "dev.tsv", content)
    length = len(first.split())
    assert words(tokens["input_ids"][0][:length]) == first
    assert tokens["attention_mask"][0].sum() == length
    assert tokens["input_ids"].shape == tokens["token_type_ids"].shape == (2, tokens["attention_mask"].sum(1).max())
    assert found.tolist() == labels


def test_texts_are_filled_up_or_cut_to_the_length_of_the_model(model: Path) -> None:
    content = "sentence\tlabel\na good film . a good film .\t1\nbad\t0\n"
    tokens, _ = read(model, "dev.tsv", content, dims=(("sequence", 6),))
    assert [words(row) for row in tokens["input_ids"]] == [
        "[CLS] a good film . [SEP]",
        "[CLS] bad [SEP] [PAD] [PAD] [PAD]",
    ]
    assert tokens["attention_mask"].tolist() == [[1] * 6, [1, 1, 1, 0, 0, 0]]


def test_a_model_takes_the_inputs_that_it_has(model: Path) -> None:
    tokens, _ = read(model, "dev.tsv", "sentence\tlabel\na\t1\nbad\t0\n")
    found = of_tensors(tokens, [Tensor("input_ids", (2, 3), dtype="int32")])
    assert {name: str(array.dtype) for name, array in found.items()} == {"input_ids": "int32"}


CONTEXT = "Ann Lee made a good film . it"


def squad(*qas: dict[str, object]) -> str:
    paragraphs = [{"context": CONTEXT, "qas": list(qas)}]
    return json.dumps({"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]})


def question(*answers: str, **more: object) -> dict[str, object]:
    found = [{"text": text, "answer_start": CONTEXT.index(text)} for text in answers]
    return {"id": "1", "question": "who made it", "answers": found, **more}


def test_answers_of_squad_are_the_first_and_last_tokens_of_their_characters(model: Path) -> None:
    content = squad(question("Ann Lee", "Lee"), question("good film"), question(is_impossible=True))
    tokens, labels = read(model, "dev-v1.1.json", content)
    row = tokens["input_ids"][0]
    assert words(row) == f"[CLS] who made it [SEP] {CONTEXT} [SEP]"
    assert [words(row[first : last + 1]) for first, last in labels[0].tolist()] == ["Ann Lee", "Lee"]
    assert words(row[labels[1, 0, 0] : labels[1, 0, 1] + 1]) == "good film"
    assert labels[1, 1].tolist() == [-100, -100]
    assert labels[2, 0].tolist() == [0, 0]
    _, labels = read(model, "cut.json", content, dims=(("sequence", 9),))
    assert [each[0].tolist() for each in labels] == [[5, 6], [0, 0], [0, 0]]  # what was cut off has no place


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("dev.tsv", ""),
        ("dev.tsv", "sentence\tlabel\n"),
        ("dev.tsv", "words\tlabel\na\t1\n"),
        ("dev.tsv", "sentence\tlabel\na\t1\nb\n"),
        ("dev.tsv", "sentence\tlabel\na\tgood\nbad\tbad\n"),
        ("dev.tsv", "index\tsentence\n0\ta\n"),  # a test set, which has no labels
        ("dev.json", "{}"),
        ("dev.json", squad()),
        ("dev.json", squad(question())),  # no answer
        ("dev.json", squad({**question("Lee"), "answers": [{"text": "Lee", "answer_start": 0}]})),
        ("dev.json", "[1"),
    ],
)
def test_other_layouts_are_refused_with_the_file(model: Path, name: str, content: str) -> None:
    with pytest.raises(FairlapError) as refused:
        read(model, name, content)
    assert refused.value.code in ("E_DATA", "E_METRIC")
    assert str(model.parent / name) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_tokenizer_that_is_missing_or_none_is_named(model: Path) -> None:
    file = model.with_name("dev.tsv")
    file.write_text("sentence\tlabel\na\t1\nbad\t0\n")
    assert given_files(source(model, file)) == (file, model.with_name("tokenizer.json"))
    for spoil in (lambda path: path.write_text("{}"), Path.unlink):
        spoil(model.with_name("tokenizer.json"))
        with pytest.raises(FairlapError) as refused:
            inputs_of(source(model, file))
        assert "tokenizer.json" in str(refused.value)
        assert "\n" not in str(refused.value)


def test_texts_are_mistyped_before_they_become_tokens(model: Path) -> None:
    file = model.with_name("dev.tsv")
    file.write_text("sentence1\tsentence2\tlabel\n" + "good film\tmade it\t1\n" * 9)
    own = source(model, file)
    [whole], [mistyped] = inputs_of(own), mistyped_inputs(own, Corruption("typos", 5))
    assert mistyped["input_ids"].shape == whole["input_ids"].shape
    unknown = (mistyped["input_ids"] == ID["[UNK]"]).sum(axis=1)
    assert (unknown > 0).all()  # a word with a typing error is none of the vocabulary
    assert len(set(map(tuple, mistyped["input_ids"].tolist()))) > 1
    squads = model.with_name("dev.json")
    squads.write_text(squad(question("Ann Lee")))
    [tokens] = mistyped_inputs(source(model, squads), Corruption("typos", 3))
    assert words(tokens["input_ids"][0]).endswith(f"[SEP] {CONTEXT} [SEP]")  # so that the answer is where it was
