"""The scenario of answers from file to answer: contestants are ranked by the time of all of it, the user's code too."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from fairlap import verdict
from fairlap.request.work import Work
from fairlap.scenarios.added import Picture, Quantity
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario
from fairlap.scenarios.process_result import ProcessResult

FROM_FILE_TO_ANSWER = "time from file to answer"
OF_THE_MODEL = verdict.Metric("time of the model", "ns", given_key="model_time")


def _answer_ns(process: ProcessResult) -> float | None:
    return None if process.answers is None else process.answers.answer_ns


def _model_ns(process: ProcessResult) -> float | None:
    return None if process.answers is None else process.answers.model_ns


def _answers_files(process: ProcessResult) -> bool:
    return process.answers is not None


def _points(process: ProcessResult) -> Iterator[dict[str, float | str]]:
    for place, each in enumerate(() if process.answers is None else process.answers.stages):
        yield {"stage": each.stage, "place": place, "ms": each.mean_ns / 1e6}


def _spec() -> dict[str, Any]:
    return {
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": "contestant", "type": "nominal", "title": None},
            "x": {"aggregate": "sum", "field": "share_ms", "type": "quantitative", "title": "time in ms"},
            "color": {"field": "stage", "type": "nominal", "sort": {"field": "place"}},
            "order": {"field": "place", "type": "quantitative"},
        },
        "transform": [
            {"joinaggregate": [{"op": "count", "as": "processes"}], "groupby": ["contestant", "stage"]},
            {"calculate": "datum.ms / datum.processes", "as": "share_ms"},
        ],
    }


_BY_STAGE = Picture(
    "by-stage",
    "Time by stage",
    "What each stage takes from file to answer: its median time of each file, averaged over files and processes.",
    _points,
    _spec,
)


class FileToAnswer(Scenario):
    judges_rounds = False
    data_seeds = (0,)  # the files are the same, so drawn weights are too
    after_turns = "fairlap.scenarios.file_to_answer.race.file_run:FileRun"
    race_side = "fairlap.scenarios.file_to_answer.race.from_request:FilesFromRequest"
    columns = "fairlap.scenarios.file_to_answer.results.column_definitions:FileRow"
    results_side = "fairlap.scenarios.file_to_answer.results.columns:FileColumns"
    render_side = "fairlap.scenarios.file_to_answer.render.shown:FilesShown"
    quantities = (Quantity(OF_THE_MODEL, _model_ns, _answers_files, period="after_turns"),)
    pictures = (_BY_STAGE,)

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return work.stages is not None

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        return Ruling(
            Judged(FROM_FILE_TO_ANSWER, verdict.Metric(FROM_FILE_TO_ANSWER, "ns"), _answer_ns, period="after_turns")
        )

    def has_result(self, work: Work, finished: Sequence[ProcessResult]) -> bool:
        return any(_answer_ns(process) is not None for process in finished)

    def reaches(self, work: Work) -> Iterable[str]:
        """List the user's functions, which run, and the folder of files that they are given."""
        if work.stages is None:
            return []
        functions = [f"function {text} in {work.stages.folder}" for text in work.stages.functions]
        return [*functions, f"files of {work.stages.items}"]
