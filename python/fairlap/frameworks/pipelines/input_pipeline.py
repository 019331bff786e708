"""What adapters of input pipelines share: a pass over data on disk is one call."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from fairlap.frameworks.adapter_parts.passes.passes import Batches, Passes
from fairlap.frameworks.contract import (
    NO_WEIGHTS,
    Contestant,
    Framework,
    Phase,
    Settings,
    Unsupported,
    refuse_what_is_unknown,
)
from fairlap.models.sources.stored_items.stored_items import StoredItems
from fairlap.models.workload import Workload

WORKERS, PREFETCH = "workers", "prefetch"
MOST_WORKERS, MOST_PREFETCH = 64, 1024


def _itself(array: Any) -> Any:
    return array


@dataclass(frozen=True)
class Opened:
    """``batches`` opens a pass and yields pairs of items and labels, which ``array`` gives as NumPy without a copy."""

    batches: Batches
    array: Callable[[Any], Any] = _itself
    parts: int = 1  # of a pass, each of which ends in an incomplete batch
    in_force: Mapping[str, str] = field(default_factory=dict)


class InputPipeline(Framework):
    """Its options are the pipeline's own settings. ``open`` may import it and must open no file of the data."""

    implementation = "pipeline"
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {WORKERS: (), PREFETCH: ()}

    @abstractmethod
    def open(self, items: StoredItems, wanted: Settings) -> Opened:
        """Raise Unsupported for a form of data that it does not read."""

    @classmethod
    def files(cls, work: Workload) -> tuple[Path, ...]:
        items: StoredItems = work.implementation(cls.implementation)
        return tuple(sorted({Path(file).parent if items.stored_as == "images" else Path(file) for file in items.files}))

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        if not work.package.startswith("/"):
            raise Unsupported(f"{self.name} reads data on disk; race it on data:FOLDER, not on a model")
        items: StoredItems = work.implementation(self.implementation)
        with phase("import"):
            _import_readers(items)
            found = self.open(items, wanted)
        passes = Passes(items, Path(work.package), found.batches, found.array, found.parts)
        is_cold = items.cache == "cold"
        return Contestant(
            bind=passes.bind,
            done=None,  # a pass has ended when it returns
            outputs=passes.outputs,
            weights=dict,
            in_force={"threads": "the pipeline's own", "precision": NO_WEIGHTS, **found.in_force},
            own_times=passes if is_cold else None,
            notices=passes.notices if is_cold else None,
        )


def _import_readers(items: StoredItems) -> None:
    """Import them once, as a script does: processes that are started for each pass would do so in each."""
    if items.has_pixels:
        import PIL.Image  # noqa: F401
    if items.stored_as == "parquet":
        import pyarrow.parquet  # noqa: F401


def whole_number_option(options: Mapping[str, str], name: str, most: int, least: int = 0) -> int | None:
    """None where it is not given."""
    text = options.get(name)
    if text is None:
        return None
    if not (text.isdecimal() and least <= int(text) <= most):
        raise Unsupported(f"{name} must be {least} to {most} (got {text})")
    return int(text)


def workers_in(options: Mapping[str, str], least: int = 0) -> int | None:
    return whole_number_option(options, WORKERS, MOST_WORKERS, least)


def prefetch_in(options: Mapping[str, str]) -> int | None:
    return whole_number_option(options, PREFETCH, MOST_PREFETCH, least=1)
