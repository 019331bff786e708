"""BLEU and WER are those of sacrebleu and jiwer on whole corpora, with each id as a word, of chrF as a character."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.metrics.metric import IGNORED, Output
from fairlap.models.task_metrics import parts_of, require_labels, score_of, value_of
from machine_marks import needed

sacrebleu = needed("sacrebleu")
jiwer = needed("jiwer")

ITEMS, TOKENS, IDS = 30, 12, 9


def padded(rows: Sequence[Sequence[int]], length: int) -> np.ndarray:
    return np.array([[*row, *[IGNORED] * (length - len(row))] for row in rows])


def text(row: Sequence[int]) -> str:
    return " ".join(map(str, row))


@pytest.fixture
def right() -> list[list[int]]:
    drawn = np.random.default_rng(0)
    return [drawn.integers(0, IDS, drawn.integers(3, TOKENS + 1)).tolist() for _ in range(ITEMS)]


@pytest.fixture
def given(right: list[list[int]]) -> list[list[int]]:
    """With ids replaced, left out and added; one is empty."""
    drawn, found = np.random.default_rng(1), []
    for row in right:
        own = [int(drawn.integers(0, IDS)) if drawn.random() < 0.2 else each for each in row if drawn.random() > 0.1]
        found.append([*own, 3, 3] if drawn.random() < 0.3 else own)
    return [*found[:-1], []]


def expected(metric: str, given: Sequence[Sequence[int]], right: Sequence[Sequence[int]]) -> float:
    texts = [text(row) for row in given], [text(row) for row in right]
    if metric == "wer":
        return float(jiwer.wer(texts[1], texts[0]))
    return float(sacrebleu.corpus_bleu(texts[0], [texts[1]], tokenize="none", force=True).score)


@pytest.mark.parametrize("metric", ["bleu", "wer"])
def test_ids_of_any_length_are_words(metric: str, given: list[list[int]], right: list[list[int]]) -> None:
    outputs, labels = padded(given, TOKENS + 5), padded(right, TOKENS)
    batches = [parts_of(metric, [outputs[at : at + 8]], labels[at : at + 8]) for at in range(0, ITEMS, 8)]
    assert value_of(metric, batches) == pytest.approx(expected(metric, given, right))
    found = score_of(metric, batches)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high


@pytest.mark.parametrize("metric", ["bleu", "wer"])
def test_of_scores_the_largest_are_taken_where_the_label_counts(metric: str, right: list[list[int]]) -> None:
    labels, drawn = padded(right, TOKENS), np.random.default_rng(2)
    scores = drawn.standard_normal((ITEMS, TOKENS, IDS)) + 3 * np.eye(IDS)[np.where(labels < 0, 0, labels)]
    best = scores.argmax(axis=-1).tolist()
    given = [row[: len(own)] for row, own in zip(best, right, strict=True)]
    assert value_of(metric, [parts_of(metric, [scores], labels)]) == pytest.approx(expected(metric, given, right))


def test_known_answers() -> None:
    labels = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 9, IGNORED]])
    assert value_of("wer", [parts_of("wer", [labels], labels)]) == 0.0
    assert value_of("bleu", [parts_of("bleu", [labels], labels)]) == pytest.approx(100.0)
    other = np.array([[1, 2, 3, 4, 4], [6, 7, 8, IGNORED, IGNORED]])  # one replaced, one left out, of nine
    assert value_of("wer", [parts_of("wer", [other], labels)]) == pytest.approx(2 / 9)
    nothing = np.full((2, 5), IGNORED)
    assert value_of("wer", [parts_of("wer", [nothing], labels)]) == 1.0
    assert value_of("bleu", [parts_of("bleu", [nothing], labels)]) == 0.0


SAID = [
    "the cat sat on the mat",
    "there is no doubt, he said, that it rains",
    "a man a plan a canal panama",
    "nothing else matters",
]
GIVEN = ["the cat is on a mat", "there is no doubt, she says that it rained", "", "nothing else matters"]
LETTERS = sorted(set("".join([*SAID, *GIVEN])))
SPACE = LETTERS.index(" ")


def in_letters(texts: Sequence[str]) -> np.ndarray:
    return padded([[LETTERS.index(each) for each in text] for text in texts], max(map(len, texts)))


def test_chrf_of_letters_is_sacrebleu_s_of_the_texts_that_they_spell() -> None:
    given, right = in_letters(GIVEN), in_letters(SAID)
    batches = [parts_of(f"chrf@{SPACE}", [given[at : at + 3]], right[at : at + 3]) for at in (0, 3)]
    by_text = sacrebleu.corpus_chrf(GIVEN, [SAID]).score
    assert 20 < by_text < 80
    assert value_of(f"chrf@{SPACE}", batches) == pytest.approx(by_text)
    found = score_of(f"chrf@{SPACE}", batches)
    assert found.low is not None
    assert found.high is not None
    assert found.low < by_text < found.high
    spaced = sacrebleu.corpus_chrf(GIVEN, [SAID], remove_whitespace=False).score
    assert value_of("chrf", [parts_of("chrf", [given], right)]) == pytest.approx(spaced)  # the space is a letter
    scores = np.eye(len(LETTERS))[np.where(right < 0, 0, right)]
    assert value_of("chrf", [parts_of("chrf", [scores], right)]) == pytest.approx(100.0)


def test_chrf_is_counted_by_hand() -> None:
    # One, two and three characters in a row: 2 of 2 are right and 2 of 3 found, 1 of 1 and 1 of 2; none is given.
    given, right = np.array([[1, 2, IGNORED]]), np.array([[1, 2, 3]])
    precision, recall = 1.0, (2 / 3 + 1 / 2) / 2
    by_hand = 100 * (1 + 2**2) * precision * recall / (2**2 * precision + recall)
    assert value_of("chrf", [parts_of("chrf", [given], right)]) == pytest.approx(by_hand)
    assert by_hand == pytest.approx(100 * 35 / 55)
    assert value_of("chrf@3", [parts_of("chrf@3", [given], right)]) == pytest.approx(100.0)


def test_chrf_takes_labels_with_characters_of_few_ids() -> None:
    output = Output("ids", (2, 3), "int64")
    for metric, labels in {"chrf@5": [[5, 5, IGNORED], [1, 2, 3]], "chrf": [[2**20, 1, 1], [1, 2, 3]]}.items():
        with pytest.raises(FairlapError) as refused:
            require_labels(metric, np.array(labels), 2, [output])
        assert refused.value.code == "E_METRIC"
    require_labels("chrf@5", np.array([[5, 1, IGNORED], [1, 2, 3]]), 2, [output])


@pytest.mark.parametrize("metric", ["bleu", "wer", "chrf"])
def test_ids_of_another_type_are_the_same_words(metric: str, given: list[list[int]], right: list[list[int]]) -> None:
    outputs, labels = padded(given, TOKENS + 5), padded(right, TOKENS)
    of_whole = value_of(metric, [parts_of(metric, [outputs], labels)])
    assert value_of(metric, [parts_of(metric, [outputs.astype(np.float64)], labels)]) == of_whole


IDS_OF_8 = Output("ids", (8, TOKENS), "int64")
SCORES_OF_8 = Output("scores", (8, TOKENS, IDS), "float32")


@pytest.mark.parametrize(
    ("labels", "output"),
    [
        (np.zeros((ITEMS, TOKENS)), IDS_OF_8),  # not whole numbers
        (np.zeros(ITEMS, int), IDS_OF_8),
        (np.full((ITEMS, TOKENS), -1), IDS_OF_8),
        (np.full((ITEMS, TOKENS), IGNORED), IDS_OF_8),
        (np.zeros((ITEMS + 1, TOKENS), int), IDS_OF_8),
        (np.zeros((ITEMS, TOKENS - 1), int), SCORES_OF_8),
        (np.full((ITEMS, TOKENS), IDS), SCORES_OF_8),
        (np.zeros((ITEMS, TOKENS), int), Output("ids", (8, TOKENS), "float32")),
        (np.zeros((ITEMS, TOKENS), int), Output("ids", (8, TOKENS, 1), "int64")),
    ],
)
def test_labels_that_do_not_fit_are_refused_in_one_line(labels: np.ndarray, output: Output) -> None:
    for metric in ("bleu", "chrf", "wer"):
        with pytest.raises(FairlapError) as refused:
            require_labels(metric, labels, ITEMS, [output])
        assert refused.value.code == "E_METRIC"
        assert "\n" not in str(refused.value)


def test_labels_that_fit_are_accepted(right: list[list[int]]) -> None:
    for output in (IDS_OF_8, SCORES_OF_8):
        require_labels("wer", padded(right, TOKENS), ITEMS, [output])
    require_labels("bleu", padded(right, TOKENS + 3), ITEMS, [IDS_OF_8])
