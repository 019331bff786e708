"""Columns of a race from file to answer: the model's part, every stage, and answers per second."""

from __future__ import annotations

from functools import partial
from typing import Any

from fairlap.request.work import Work
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.prices import Price
from fairlap.results.scenario_side import ResultsSide, all_absent
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.file_to_answer.results.column_definitions import FileRow, StageTime
from fairlap.scenarios.process_result import ProcessResult

_NOT_ASKED = "its calls answer no files; --items and --before time all from file to answer"
_NOT_ALL = "not every file was answered in time"


class FileColumns(ResultsSide):
    def cells(self, result: ContestantResult, work: Work, price: Price | None) -> dict[str, Cell]:
        why = _NOT_ASKED if work.stages is None else absence_reason(result)
        if why:
            return all_absent(FileRow, why)
        processes = result.finished
        return {
            "file_model_ns": cell_or(estimate(processes, _model_ns), _NOT_ALL),
            "file_model_share": cell_or(estimate(processes, _model_share), _NOT_ALL),
            "file_answers_per_s": cell_or(estimate(processes, _per_s), _NOT_ALL),
            "file_overlapped_per_s": cell_or(estimate(processes, _overlapped_per_s), _NOT_ALL),
        }

    def fields(self, result: ContestantResult, work: Work) -> dict[str, Any]:
        return {
            "file_items": "" if work.stages is None else work.stages.text,
            "file_stages": [] if work.stages is None else _stage_times(result, work.stages.labels),
        }


def _stage_times(result: ContestantResult, labels: tuple[str, ...]) -> list[StageTime]:
    found = []
    for place, label in enumerate(labels):
        stage_ns = estimate(result.finished, partial(_stage_ns, place))
        share = estimate(result.finished, partial(_stage_share, place))
        if stage_ns is not None and share is not None:
            found.append(StageTime(label, stage_ns, share.value))
    return found


def _model_ns(process: ProcessResult) -> float | None:
    return None if process.answers is None else process.answers.model_ns


def _model_share(process: ProcessResult) -> float | None:
    return _share_of(process, _model_ns(process))


def _stage_ns(place: int, process: ProcessResult) -> float | None:
    answers = process.answers
    return None if answers is None or not answers.stages else answers.stages[place].mean_ns


def _stage_share(place: int, process: ProcessResult) -> float | None:
    return _share_of(process, _stage_ns(place, process))


def _share_of(process: ProcessResult, part_ns: float | None) -> float | None:
    whole_ns = None if process.answers is None else process.answers.answer_ns
    return None if part_ns is None or not whole_ns else part_ns / whole_ns


def _per_s(process: ProcessResult) -> float | None:
    return None if process.answers is None else process.answers.per_s


def _overlapped_per_s(process: ProcessResult) -> float | None:
    return None if process.answers is None else process.answers.overlapped_per_s
