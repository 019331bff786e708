"""Texts as the tokens of a model, by the ``tokenizer.json`` beside it, all of one length."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.models.metrics.metric import IGNORED
from fairlap.models.published_data.boxed_photos import has_boxes
from fairlap.models.published_data.glue_files import glue_texts
from fairlap.models.published_data.hugging_face_folders import holds_hugging_face, hugging_face_folder
from fairlap.models.published_data.published_images import Array, refuse
from fairlap.models.published_data.squad_files import squad_texts
from fairlap.models.published_data.texts import Texts
from fairlap.models.slices.typos import mistyped
from fairlap.request.fields.data.corruption import Corruption

TOKENIZER = "tokenizer.json"
_READERS = {".tsv": glue_texts, ".json": squad_texts}
_MOST_TOKENS, _MOST_OF_QUESTIONS = 128, 384  # of an item, as is usual for these sets
_PADDING = ("[PAD]", "<pad>", "<|endoftext|>")
_NONE = (0, 0)  # the place of an answer that is not there


class Tokens(dict[str, Array]):
    """Arrays by the usual names of inputs. A model takes those that it has."""


def is_text(path: Path) -> bool:
    """Whether a file would be one of texts by its name, and has no boxes of photos; or a folder has texts."""
    if holds_hugging_face(path):
        return bool(hugging_face_folder(path).columns_of_texts)
    return path.suffix.lower() in _READERS and not has_boxes(path)


@cache
def tokens_of(path: Path, tokenizer: Path, length: int | None, typos: Corruption | None = None) -> Tokens:
    """Encode each item; shorter ones are filled up, longer ones are cut, of two texts the second one.

    ``typos`` mistypes them before, of questions about a paragraph the questions alone.
    """
    texts = _texts(path)
    encoded = _encoded(path, texts if typos is None else _with_typos(texts, typos), tokenizer, length)
    return Tokens(
        input_ids=np.array([each.ids for each in encoded], np.int64),
        attention_mask=np.array([each.attention_mask for each in encoded], np.int64),
        token_type_ids=np.array([each.type_ids for each in encoded], np.int64),
    )


def labels_of_texts(path: Path, tokenizer: Path, length: int | None) -> Array:
    """Read the label of each item, or of questions the first and the last token of each right answer.

    An answer that is not in what is left of its text is at the first token, as in training.
    """
    texts = _texts(path)
    if texts.labels is not None:
        return texts.labels
    if texts.spans is None:
        raise refuse(path, "it has no labels, as the test sets of GLUE have none")
    encoded = _encoded(path, texts, tokenizer, length)
    found = [_places(one, spans) for one, spans in zip(encoded, texts.spans, strict=True)]
    labels = np.full((len(found), max(map(len, found)), 2), IGNORED, np.int64)
    for number, places in enumerate(found):
        labels[number, : len(places)] = places
    return labels


def _with_typos(texts: Texts, typos: Corruption) -> Texts:
    both = [texts.first, *([] if texts.second is None or texts.spans is not None else [texts.second])]
    drawn = [typos.drawn_for(number) for number in range(len(texts.first))]
    first, *second = (
        [mistyped(text, typos.severity, own) for text, own in zip(each, drawn, strict=True)] for each in both
    )
    return replace(texts, first=first, second=second[0] if second else texts.second)


def _texts(path: Path) -> Texts:
    if holds_hugging_face(path):
        return hugging_face_folder(path).texts()
    return _READERS[path.suffix.lower()](path)


def _encoded(path: Path, texts: Texts, file: Path, length: int | None) -> list[Any]:
    tokenizer = _tokenizer(path, file)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    most = length or (_MOST_TOKENS if texts.spans is None else _MOST_OF_QUESTIONS)
    two = texts.second is not None
    tokenizer.enable_truncation(most, strategy="only_second" if texts.spans is not None else "longest_first")
    items = list(zip(texts.first, texts.second or (), strict=True)) if two else list(texts.first)
    try:
        encoded = tokenizer.encode_batch(items)
    except Exception as error:  # the library raises one type for all
        raise refuse(path, f"its texts cannot be cut to {most} tokens: {error}") from None
    longest = length or max(len(each.ids) for each in encoded)
    for each in encoded:
        each.pad(longest, pad_id=_padding(tokenizer))
    return list(encoded)


def _tokenizer(path: Path, file: Path) -> Any:
    if find_spec("tokenizers") is None:
        raise refuse(
            path, "texts are read with tokenizers, which is not installed: pip install 'fairlap[transformers]'"
        )
    from tokenizers import Tokenizer

    if not file.is_file():
        raise refuse(path, f"there is no {file} to make tokens of its texts; put the model's {TOKENIZER} there")
    try:
        return Tokenizer.from_str(json.dumps(json.loads(file.read_bytes())))
    except Exception as error:  # the library raises one type for all
        raise refuse(file, f"it is not a tokenizer: {str(error).splitlines()[0]}") from None


def _padding(tokenizer: Any) -> int:
    known = (tokenizer.token_to_id(each) for each in _PADDING)
    return next((each for each in known if each is not None), 0)


def _places(encoded: Any, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Find the first and the last token of the second text that has a character of each span."""
    inside = [
        (number, start, end)
        for number, ((start, end), which) in enumerate(zip(encoded.offsets, encoded.sequence_ids, strict=True))
        if which == 1 and end > start
    ]
    cut = max((end for _, _, end in inside), default=0)
    found = []
    for begin, after in spans:
        touching = [number for number, start, end in inside if start < after and end > begin]
        if touching and after <= cut:
            found.append((touching[0], touching[-1]))
    return list(dict.fromkeys(found)) or [_NONE]
