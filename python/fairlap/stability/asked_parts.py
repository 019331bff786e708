"""The models of a table by the precisions that they have, and rows of those that they lack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fairlap.errors import InvalidRequest
from fairlap.models.operations.listed import is_pattern
from fairlap.models.registry import find
from fairlap.models.sources.registry import kind_of
from fairlap.race.operations import is_operation, selected_models
from fairlap.request.names import ContestantName
from fairlap.request.work import Precision, Work, why_not_on
from fairlap.stability.table import StabilityRow


@dataclass(frozen=True)
class Part:
    """Models that are planned together: at one batch, in the same precisions of those that are asked for."""

    batch: int | None
    precisions: tuple[Precision, ...]
    models: list[str] = field(default_factory=list)
    lacking: dict[tuple[str, Precision], str] = field(default_factory=dict)

    def rows_without(self, contestants: Iterable[ContestantName]) -> list[StabilityRow]:
        """List what no contestant can do, with the reason."""
        return [
            StabilityRow(
                contestant=name.text,
                work=work.label,
                model=work.model,
                precision=work.precision,
                batch=work.batch,
                absent=why,
                code="E_UNSUPPORTED",
            )
            for (model, precision), why in self.lacking.items()
            for work in (Work(model, self.batch or 1, precision=precision),)
            for name in contestants
        ]


def parts_of(
    models: Sequence[str], batch: int, precisions: Sequence[Precision], device: str, report: Callable[[str], None]
) -> list[Part]:
    """Put operations, whose sizes are in their names, apart from models, which take the batch.

    Raises InvalidRequest where no model has any of the precisions.
    """
    sized = [each for each in models if is_operation(each) or is_pattern(each)]
    parts: dict[tuple[int | None, tuple[Precision, ...]], Part] = {}
    for model in (*selected_models(sized, report)[0], *(each for each in models if each not in sized)):
        lacking = _lacking(model, precisions, device)
        of_batch = None if model in sized or is_operation(model) or kind_of(model) is not None else batch
        has = tuple(each for each in precisions if each not in lacking)
        part = parts.setdefault((of_batch, has), Part(of_batch, has))
        part.models.append(model)
        part.lacking.update({(model, precision): why for precision, why in lacking.items()})
    if not any(part.precisions for part in parts.values()):
        raise InvalidRequest(next(why for part in parts.values() for why in part.lacking.values()))
    return list(parts.values())


def _lacking(model: str, precisions: Sequence[Precision], device: str) -> Mapping[Precision, str]:
    """Find those that the device or the model lacks. A file has its own, which its contestants report."""
    of_model = None if kind_of(model) is not None else find(model).spec.precisions
    found = {each: why_not_on(each, device) for each in precisions}
    for each in precisions:
        if of_model is not None and each not in of_model and not found[each]:
            found[each] = f"it has no {each}, but {', '.join(of_model)}"
    return {each: why for each, why in found.items() if why}
