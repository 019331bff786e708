"""What a request asks to call contestants on, besides their own inputs, to see what compiling does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlap.engine.arguments import whole_number
from fairlap.errors import InvalidRequest
from fairlap.models.modes import MODES
from fairlap.models.registry import find, free_sizes_at
from fairlap.request.fields.sizes.other_inputs import CODE, OtherInputs, batches_and_others
from fairlap.request.race_request import MOST_BATCH, RaceRequest
from fairlap.request.work import Work


def called_on(request: RaceRequest) -> tuple[tuple[int, ...], tuple[OtherInputs, ...]]:
    """Batches, and what else contestants are called on to see what compiling does."""
    found = request.recompile if isinstance(request.recompile, tuple) else (request.recompile,)
    modes = request.mode if isinstance(request.mode, tuple) else (request.mode,)
    if found and (held := [mode for mode in modes if MODES[mode].holds_labels]):
        raise InvalidRequest(
            f"--recompile is for --mode infer and train: in mode {held[0]} the labels of one batch are part of what "
            "is compiled",
            code=CODE,
        )
    batches, others = batches_and_others(found)
    for batch in batches:
        whole_number("recompile", batch, least=1, most=MOST_BATCH)
    return batches, others


def require_free_sizes(others: Iterable[OtherInputs], works: Sequence[Work]) -> None:
    for each in others:
        for work in works:
            _require_free_size(each, work)


def _require_free_size(wanted: OtherInputs, work: Work) -> None:
    if not wanted.size:
        return
    if work.source is not None:
        why = "a model of your own is opened with the sizes of --shapes, so only its batch can change; race others"
        raise InvalidRequest(f"--recompile {wanted.text}: {why} with --shapes", code=CODE)
    known = {} if work.sizes is not None else free_sizes_at(find(work.model).package)
    if wanted.size not in known:
        can = f"it has {', '.join(known)}" if known else "only its batch can change"
        raise InvalidRequest(
            f"--recompile {wanted.text}: {work.model} has no free size {wanted.size!r}; {can}", code=CODE
        )
    least, most = known[wanted.size]
    if not least <= wanted.to <= most:
        raise InvalidRequest(
            f"--recompile {wanted.text}: {wanted.size} of {work.model} must be between {least} and {most}",
            code=CODE,
        )
