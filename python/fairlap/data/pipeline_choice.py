"""The pipeline that a contestant chooses: ``torch:feed=dataloader:workers=2``, ``tensorflow:feed=tfdata``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.data.pipeline import Job, Pipeline
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Fed, Unsupported

OPTION, WORKERS = "feed", "workers"
OURS = "fairlap"
_FRAMEWORKS = {"dataloader": "torch", "tfdata": "tensorflow"}
_MAX_WORKERS = 64


@dataclass(frozen=True)
class Choice:
    pipeline: str = OURS
    workers: int = 0  # of a DataLoader, whose default is 0

    def opened(self, job: Job, fed: Fed) -> Pipeline:
        """Import only the chosen pipeline."""
        if self.pipeline != OURS and fed.device != "cpu":
            why = f"{OPTION}={self.pipeline} hands over batches in host memory, not on {fed.device}"
            raise Unsupported(f"{why}; leave {OPTION}= out")
        if self.pipeline == "dataloader":
            from fairlap.data.torch_pipeline import DataLoaderPipeline

            return DataLoaderPipeline(job, self.workers)
        if self.pipeline == "tfdata":
            from fairlap.data.tensorflow_pipeline import TfDataPipeline

            return TfDataPipeline(job)
        from fairlap.data.native_pipeline import NativePipeline

        return NativePipeline(job, fed)


def choice_in(options: Mapping[str, str], framework: str) -> Choice:
    """Raise InvalidRequest for an invalid choice. Other options are ignored."""
    pipeline = options.get(OPTION, OURS)
    if pipeline != OURS and pipeline not in _FRAMEWORKS:
        raise InvalidRequest(f"{OPTION} must be one of {', '.join([OURS, *_FRAMEWORKS])} (got {pipeline})")
    if _FRAMEWORKS.get(pipeline, framework) != framework:
        raise InvalidRequest(f"{OPTION}={pipeline} feeds {_FRAMEWORKS[pipeline]}, not {framework}")
    if WORKERS not in options or (pipeline == OURS and OPTION not in options):
        return Choice(pipeline)
    text = options[WORKERS]
    if pipeline != "dataloader" or not text.isdecimal() or int(text) > _MAX_WORKERS:
        raise InvalidRequest(f"{WORKERS} must be 0 to {_MAX_WORKERS}, with {OPTION}=dataloader (got {text})")
    return Choice(pipeline, int(text))


def without_choice(options: Mapping[str, str]) -> dict[str, str]:
    """Keep the options that belong to the framework."""
    taken = (OPTION, WORKERS) if OPTION in options else (OPTION,)
    return {name: value for name, value in options.items() if name not in taken}
