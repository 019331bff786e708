"""What a race from file to answer makes of a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.models.spec import Spec
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.works_from_request import data_seeds_asked, modes_asked, precisions_asked
from fairlap.race.scenario_side import RaceSide
from fairlap.request.fields.data.stages import CODE, hash_of_files, require_functions, stages_of
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import CALLABLE, Work
from fairlap.scenarios.file_to_answer.race.file_references import references_of
from fairlap.scenarios.file_to_answer.race.file_run import require_float32


class FilesFromRequest(RaceSide):
    title = "--items"
    is_for_choices = True
    refuses = ("load", "data", "generate", "shapes_from", "recompile", "max_batch", "processes", "hosts")
    does = "times answers to files"
    is_for_cpu = True
    code = CODE

    def is_asked(self, request: RaceRequest) -> bool:
        return request.items is not None

    def require(self, request: RaceRequest) -> None:
        if CALLABLE in request.models:
            raise InvalidRequest("--items is for models, such as model.onnx; a command has none", code=CODE)
        if not request.before:
            raise InvalidRequest(
                "--items needs --before module:function, which makes the model's inputs of the path of a file",
                code=CODE,
            )
        for option, text in (("before", request.before), ("after", request.after)):
            require_functions(option, _functions(text))
        if set(modes_asked(request)) != {"infer"} or set(precisions_asked(request)) != {"fp32"}:
            raise InvalidRequest("--items is for inference in fp32; leave out --mode and --precision", code=CODE)

    def require_unasked(self, request: RaceRequest) -> None:
        for option, text in (("before", request.before), ("after", request.after)):
            if text:
                raise InvalidRequest(f"--{option} is for --items, a folder with a file for each answer", code=CODE)

    def with_settings(self, request: RaceRequest, work: Work, spec: Spec, notify: Callable[[str], None]) -> Work:
        """Answer every file by the reference, which proves that the functions take them."""
        if not work.is_model or spec.continuation or not spec.computes:
            raise InvalidRequest(f"--items is for models that give outputs of inputs; {work.model} does not", code=CODE)
        assert request.items is not None
        stages = stages_of(request.items, _functions(request.before), _functions(request.after))
        work = msgspec.structs.replace(work, stages=stages)
        references_of(materials_for(work, data_seeds_asked(request)[0], notify), request.pass_env, notify)
        return work

    def require_plan(self, plan: Plan, works: Sequence[Materials]) -> None:
        """Answer the files before processes run, also where a stored plan runs again."""
        for each in works:
            if each.work.stages is not None:
                require_float32(each)
                references_of(each, plan.pass_env)

    def require_unchanged(self, work: Work) -> None:
        if work.stages is not None and hash_of_files(work.stages) != work.stages.sha256:
            raise InvalidRequest(
                f"files of {work.stages.items} changed since the run was planned", code="E_DATA_CHANGED"
            )

    def readable(self, work: Work) -> Sequence[Path]:
        return () if work.stages is None else (Path(work.stages.items), Path(work.stages.folder))


def _functions(given: str | tuple[str, ...]) -> tuple[str, ...]:
    """Several are in their order; of a text, between commas."""
    return tuple(part.strip() for part in given.split(",")) if isinstance(given, str) else given
