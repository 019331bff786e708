"""Built-in models, exported by PyTorch as a user would, are raced as a user's own models in every framework.

    python tests/bench/exported_models.py
    python tests/bench/exported_models.py --models mlp,convnet --on jax,litert --print

Each model is exported to an ONNX file and to a `.pt2` file at batch 1, with the inputs of the built-in model. One
process of each contestant checks the outputs as in every race; its times are not used. The table in
docs/reference/onnx-import.md comes from here. Exit status 1 if an output is wrong or a route fails.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from fairlap.frameworks.registry import framework_named
from fairlap.models.reference import reference_answers
from fairlap.models.sources.bundle import bundle_in, route_to, write_bundle
from fairlap.models.spec import Tolerance
from fairlap.models.workload import Workload
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Measuring
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.race import Race
from fairlap.request.fields.source import Source
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult
from generated_page import DOCS, write_part
from workloads_of_models import models_that_infer, workload_of

CONTESTANTS = "torch,torch:compile,jax,tensorflow:graph,tensorflow:xla,onnxruntime,openvino,litert"
NO_MODULE = ("callable",)  # a model of whatever is handed in
PAGE = DOCS / "reference" / "onnx-import.md"
DATA_SEED = 0


@dataclass(frozen=True)
class Exported:
    """A file with the route of each contestant to it; ``processes`` are of those that have one."""

    model: str
    kind: str
    hand_written: Tolerance
    own: Tolerance  # the largest of its outputs
    reference: float  # its float64 reference from that of the built-in model, relative
    processes: dict[str, ProcessResult]

    def cell(self, contestant: str) -> str:
        process = self.processes.get(contestant)
        if process is None:
            return "–"
        return f"{self.distance(process):.0e}" if not self.wrong(process) else f"**{process.outcome}**"

    def distance(self, process: ProcessResult) -> float:
        return max(error.distance for error in process.errors)

    def wrong(self, process: ProcessResult) -> str:
        """Why it did not finish, within both tolerances; empty if it did."""
        return "" if process.finished else f"{process.message} [{process.code}]"


def module_with_inputs(work: Workload) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """By place where the module names its arguments, and by name where it takes any."""
    import torch

    module = work.implementation("torch").build(work.weights)
    tensors = {name: torch.tensor(array) for name, array in work.inputs.items()}
    kinds = {each.kind for each in inspect.signature(module.forward).parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return module, (), tensors
    return module, tuple(tensors.values()), {}


def write_onnx(work: Workload, file: Path) -> None:
    import torch

    module, places, named = module_with_inputs(work)
    torch.onnx.export(module, places, kwargs=named, dynamo=True, verbose=False).save(file)


def write_program(work: Workload, file: Path) -> None:
    import torch

    module, places, named = module_with_inputs(work)
    torch.export.save(torch.export.export(module, places, named), file)


WRITERS: dict[str, tuple[str, Callable[[Workload, Path], None]]] = {
    "ONNX": ("onnx", write_onnx),
    "`.pt2`": ("pt2", write_program),
}


def written_in_a_process(kind: str, model: str, file: Path) -> None:
    """So that the memory of the exporter is free when the file is raced."""
    import subprocess

    command = [sys.executable, __file__, "--models", model, "--write", kind, "--file", str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"PyTorch cannot export {model} to {kind}:\n{done.stderr}")


def raced(model: str, kind: str, contestants: str, folder: Path) -> Exported:
    work = workload_of(model, batch=1, seed=DATA_SEED)
    file = folder / f"{model}.{WRITERS[kind][0]}"
    written_in_a_process(kind, model, file)
    arrays: dict[str, Any] = {str(place): array for place, array in enumerate(work.inputs.values())}
    np.savez(folder / "inputs.npz", **arrays)
    inputs = "" if kind == "`.pt2`" else str(folder / "inputs.npz")  # a program comes with its own
    source = Source(file.name, str(file), str(folder), inputs=inputs)
    materials = materials_for(Work(file.name, 1, source=source), DATA_SEED)
    own = list(materials.output_tolerances.values())
    hold_to_both(materials, work.spec.tolerances["fp32"])
    processes = dict(processes_of(materials, contestants))
    return Exported(
        model,
        kind,
        work.spec.tolerances["fp32"],
        Tolerance(
            min(each.cosine for each in own), max(each.absolute for each in own), max(each.relative for each in own)
        ),
        between_references(materials, work),
        processes,
    )


def hold_to_both(materials: Materials, written: Tolerance) -> None:
    """Race within the stricter of the file's own tolerance and that of the built-in model."""
    bundle = bundle_in(materials.folder)
    both = {
        name: Tolerance(
            max(own.cosine, written.cosine), min(own.absolute, written.absolute), min(own.relative, written.relative)
        )
        for name, own in bundle.tolerances["fp32"].items()
    }
    write_bundle(materials.folder, msgspec.structs.replace(bundle, tolerances={**bundle.tolerances, "fp32": both}))
    bundle_in.cache_clear()


def between_references(materials: Materials, work: Workload) -> float:
    """Measure the distance; outputs have other names in the file, and the same order."""
    ours, theirs = reference_answers(work), materials.reference("inputs")
    pairs = zip(work.spec.outputs, materials.spec.outputs, strict=True)
    return max(_distance(theirs[own.name], ours[each.name]) for each, own in pairs)


def _distance(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def processes_of(materials: Materials, contestants: str) -> Iterator[tuple[str, ProcessResult]]:
    bundle = bundle_in(materials.folder)
    cores = tuple(sorted(os.sched_getaffinity(0)))
    for contestant in Contestants(contestants):
        adapter = framework_named(contestant.framework)
        if route_to(bundle, adapter.name, adapter.implementation).why_not:
            continue
        plan = draw_plan(
            (contestant,),
            (Work(materials.work.model, bundle.batch, source=bundle.source),),
            blocks=1,
            conditions="as-found",
            threads=len(cores),
            available_cores=cores,
            seed=1,
            data_seeds=(DATA_SEED,),
            measuring=Measuring(seconds=0.02),
        )
        race = Race(plan)
        race.run()
        [process] = race.processes
        yield contestant.text, process


def row(found: Exported, names: list[str]) -> str:
    both = f"{found.hand_written.absolute:.0e}, {found.hand_written.relative:.0e}"
    own = f"{found.own.absolute:.0e}, {found.own.relative:.0e}"
    cells = [found.model, found.kind, both, own, f"{found.reference:.0e}", *map(found.cell, names)]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description="Race exported built-in models.")
    parser.add_argument("--models", default=",".join(name for name in models_that_infer() if name not in NO_MODULE))
    parser.add_argument("--kinds", default=",".join(WRITERS))
    parser.add_argument("--on", default=CONTESTANTS, help="contestants, separated by commas")
    parser.add_argument("--print", action="store_true", help="leave the documentation as it is")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        WRITERS[options.write][1](workload_of(options.models, batch=1, seed=DATA_SEED), options.file)
        return 0
    names = [name.text for name in Contestants(options.on)]
    heads = ["model", "file", "tolerance of the built-in model", "own tolerance", "references", *names]
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    print("\n".join(lines), flush=True)
    lost: list[str] = []
    for model in options.models.split(","):
        for kind in options.kinds.split(","):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["FAIRLAP_CACHE"] = f"{folder}/cache"
                found = raced(model, kind, options.on, Path(folder))
            lines.append(row(found, names))
            print(lines[-1], flush=True)
            wrong = {name: found.wrong(process) for name, process in found.processes.items()}
            lost += [f"- {model} from {kind} in {name}: {why}" for name, why in wrong.items() if why]
    text = "\n".join([*lines, *(["", *lost] if lost else [])])
    if lost:
        print("\n" + "\n".join(lost))
    if not options.print:
        write_part(PAGE, "exported", text)
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
