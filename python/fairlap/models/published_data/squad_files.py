"""The JSON files of SQuAD 1.1 and 2.0: questions about paragraphs, with answers by their first characters."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairlap.models.published_data.published_images import refuse
from fairlap.models.published_data.texts import Texts


class _Answer(msgspec.Struct):
    text: str
    answer_start: int


class _Question(msgspec.Struct):
    id: str
    question: str
    answers: list[_Answer] = []
    is_impossible: bool = False


class _Paragraph(msgspec.Struct):
    context: str
    qas: list[_Question]


class _Article(msgspec.Struct):
    paragraphs: list[_Paragraph]


class _File(msgspec.Struct):
    data: list[_Article]


def squad_texts(file: Path) -> Texts:
    try:
        found = msgspec.json.decode(file.read_bytes(), type=_File)
    except msgspec.MsgspecError as error:
        raise refuse(file, f"it is not a file of SQuAD: {error}") from None
    questions, contexts, spans = [], [], []
    for paragraph in (each for article in found.data for each in article.paragraphs):
        for each in paragraph.qas:
            questions.append(each.question)
            contexts.append(paragraph.context)
            spans.append(_spans(file, each, paragraph.context))
    if not questions:
        raise refuse(file, "it has no questions")
    return Texts(questions, contexts, spans=spans)


def _spans(file: Path, question: _Question, context: str) -> list[tuple[int, int]]:
    if question.is_impossible:
        return []
    found = dict.fromkeys((each.answer_start, each.answer_start + len(each.text)) for each in question.answers)
    for each in question.answers:
        if not each.text or context[each.answer_start : each.answer_start + len(each.text)] != each.text:
            raise refuse(file, f"an answer to the question {question.id!r:.40} is not where it says in its paragraph")
    if not found:
        raise refuse(file, f"the question {question.id!r:.40} has no answer")
    return list(found)
