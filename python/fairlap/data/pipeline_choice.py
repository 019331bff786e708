"""Which pipeline a contestant asks for: ``torch:feed=dataloader:workers=2``, ``tensorflow:feed=tfdata``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.data.pipeline import Job, Pipeline
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Fed

OPTION, WORKERS = "feed", "workers"
OURS = "fairlap"
_WHOSE = {"dataloader": "torch", "tfdata": "tensorflow"}
_MOST_WORKERS = 64


@dataclass(frozen=True)
class Choice:
    pipeline: str = OURS
    workers: int = 0  # of a DataLoader; 0 is its own default

    def opened(self, job: Job, fed: Fed) -> Pipeline:
        """Only what was chosen is imported."""
        if self.pipeline == "dataloader":
            from fairlap.data.torch_pipeline import DataLoaderPipeline

            return DataLoaderPipeline(job, self.workers)
        if self.pipeline == "tfdata":
            from fairlap.data.tensorflow_pipeline import TfDataPipeline

            return TfDataPipeline(job)
        from fairlap.data.native_pipeline import NativePipeline

        return NativePipeline(job, fed.hand_over)


def choice_in(options: Mapping[str, str], framework: str) -> Choice:
    """Refuses what cannot be; other options are somebody else's."""
    pipeline = options.get(OPTION, OURS)
    if pipeline != OURS and pipeline not in _WHOSE:
        raise InvalidRequest(f"there is no {OPTION}={pipeline}; there are {', '.join([OURS, *_WHOSE])}")
    if _WHOSE.get(pipeline, framework) != framework:
        raise InvalidRequest(f"{OPTION}={pipeline} feeds {_WHOSE[pipeline]}, not {framework}")
    if WORKERS not in options or (pipeline == OURS and OPTION not in options):
        return Choice(pipeline)
    text = options[WORKERS]
    if pipeline != "dataloader" or not text.isdecimal() or int(text) > _MOST_WORKERS:
        raise InvalidRequest(f"{WORKERS}={text}: {OPTION}=dataloader takes from 0 to {_MOST_WORKERS} of them")
    return Choice(pipeline, int(text))


def without_choice(options: Mapping[str, str]) -> dict[str, str]:
    """What is left for the framework."""
    taken = (OPTION, WORKERS) if OPTION in options else (OPTION,)
    return {name: value for name, value in options.items() if name not in taken}
