"""PyTorch's files: an ExportedProgram (``.pt2``), and TorchScript.

PyTorch reads the former after it was checked; the latter's code runs when it is read. Nothing in them is unpickled.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import cause_of, described
from fairlap.models.sources.archives import require_archive
from fairlap.models.sources.contract import Bundle, Opened, Route, SourceError, SourceKind
from fairlap.models.sources.given_data.reading import inputs_of
from fairlap.models.sources.named_axes import asked_sizes
from fairlap.models.sources.python_models.exported_programs import read_outputs_as_dicts, require_harmless_program
from fairlap.models.sources.python_models.open_axes import resized
from fairlap.models.sources.python_models.torch_models import implementation_of_module, opened_module, require_no_sizes
from fairlap.models.sources.python_models.torch_source import TorchSource
from fairlap.request.fields.source import Source
from fairlap.suggestions import with_hint

PROGRAM = "program.pt2"
_INSTEAD = "save it with torch.export.save, or name module:function"
_IMAGE = 4  # sizes
_FROM_SCRIPT = "native, from TorchScript by PyTorch's converter"


class TorchFile(SourceKind):
    title = "PyTorch"
    suffixes = (".pt2", ".pt", ".pth", ".jit", ".torchscript")
    names_dimensions = True
    no_gradients = (
        "an exported or scripted file holds the model as it is in inference; "
        "name module:function, which returns the module"
    )

    @classmethod
    def check(cls, source: Source) -> None:
        require_archive(source, f"a pickle, which is not read; {_INSTEAD}")
        _require_program(Path(source.path))
        if not source.trust and not _is_program(Path(source.path)):
            raise SourceError(
                f"{source.text} is TorchScript, whose code runs when it is read; add --trust if you trust it, or save "
                "the module with torch.export.save",
                code="E_SOURCE_TRUST",
            )

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        path, named = Path(source.path), asked_sizes(source)
        if _is_program(path):
            require_no_sizes(msgspec.structs.replace(source, dims=()))
            program = load_program(path, trust=source.trust)
            found = _source_of(program, Route("native"))
            found = replace(found, example=resized(program, found.example, source))
        else:
            if named:
                raise SourceError(
                    f"{source.text} is TorchScript, which is raced at one size; {_INSTEAD}", code="E_SHAPES"
                )
            program = _from_script(path, source)
            import torch

            torch.export.save(program, folder / PROGRAM)
            found = _source_of(program, Route(_FROM_SCRIPT))
        return replace(opened_module(found, source, folder), dims=tuple(name for name, _ in named))

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        own = folder / PROGRAM
        file = own if own.is_file() else Path(bundle.source.path)
        trust = bundle.source.trust
        return implementation_of_module(
            folder, framework, lambda: _source_of(load_program(file, trust=trust), Route("native"))
        )


def _is_program(path: Path) -> bool:
    return path.suffix.lower() == ".pt2"


def _require_program(path: Path) -> None:
    """torch.save writes an archive as well, and code alone could read its pickle."""
    with zipfile.ZipFile(path) as archive:
        names = {name.partition("/")[2] for name in archive.namelist()}
    if "data.pkl" in names and "constants.pkl" not in names:
        raise SourceError(
            f"{path.name} was written by torch.save: a pickle of weights or of a module, which is not read; {_INSTEAD}"
        )


def load_program(path: Path, *, trust: bool) -> Any:
    """Without trust not by ``torch.export.load``, which reads an older format where this one fails."""
    import torch

    if not trust:
        require_harmless_program(path)
    with suppress(SourceError):  # of an older format, which needs trust
        read_outputs_as_dicts(path)
    try:
        with _nothing_unpickled(trust, path.name):
            if trust:
                return torch.export.load(path)
            from torch.export.pt2_archive._package import load_pt2

            return load_pt2(path).exported_programs["model"]
    except SourceError:
        raise
    except Exception as error:  # of zipfile, JSON, PyTorch's schema
        raise SourceError(f"{path.name} is damaged, or not an ExportedProgram: {described(error)}") from None


@contextmanager
def _nothing_unpickled(trust: bool, name: str) -> Iterator[None]:
    """PyTorch falls back to unpickling when safe loading fails."""
    import torch

    original = torch.load

    def safe(*arguments: Any, weights_only: bool | None = None, **named: Any) -> Any:
        if weights_only is False and not trust:
            raise SourceError(
                f"{name} holds a pickle, which can run any code when it is read; add --trust if you trust it",
                code="E_SOURCE_TRUST",
            )
        return original(*arguments, weights_only=True if weights_only is None else weights_only, **named)

    torch.load = safe
    try:
        yield
    finally:
        torch.load = original


def _source_of(program: Any, native: Route) -> TorchSource:
    """With the inputs that the program was exported with, by the names of its arguments."""
    if program.example_inputs is None:
        raise SourceError("the program was saved without its example inputs", code="E_SOURCE_INPUTS")
    arguments, named = program.example_inputs
    names = program.graph_signature.user_inputs
    if len(names) != len(arguments) + len(named):
        raise SourceError("the program takes inputs that are not tensors", code="E_SOURCE_INPUTS")
    by_place = tuple(names[: len(arguments)])
    example = dict(zip([*by_place, *named], [*arguments, *named.values()], strict=True))
    return TorchSource(program.module(check_guards=False), example, native, by_place)


def _from_script(path: Path, source: Source) -> Any:
    import torch
    from torch._export.converter import TS2EPConverter

    try:
        script = torch.jit.load(path, map_location="cpu")
    except RuntimeError as error:
        raise SourceError(f"{path.name} is not TorchScript ({described(error)}); {_INSTEAD}") from None
    arguments = script.forward.schema.arguments[1:]
    if others := [f"{each.name} ({each.type})" for each in arguments if str(each.type) != "Tensor"]:
        raise SourceError(
            f"{path.name} takes {', '.join(others)}, and only tensors are drawn; name module:function, a function that "
            "returns a torch.nn.Module which fills in the rest, and its example inputs",
            code="E_SOURCE_INPUTS",
        )
    names = [each.name for each in arguments]
    examples = _examples_like(names, source) if source.like else [_example_for(names, source)]
    for number, example in enumerate(examples, start=1):
        try:
            return TS2EPConverter(script.eval(), tuple(example.values()), None).convert()
        except Exception as error:  # the converter raises its own errors
            if number == len(examples):
                cause = cause_of(error)
                raise SourceError(f"PyTorch cannot convert {path.name} to an ExportedProgram: {cause}") from None
    raise AssertionError("there is an example")


def _example_for(names: list[str], source: Source) -> Mapping[str, Any]:
    """TorchScript does not say what its inputs look like."""
    import torch

    given = inputs_of(source)
    if given:
        first = dict(zip(names, given[0].values(), strict=False)) if "" in given[0] else given[0]
        if set(first) == set(names):
            return {name: torch.from_numpy(np.array(first[name])) for name in names}
    shapes = dict(source.shapes)
    if unknown := [
        name for name in (*shapes, *(given[0] if given and "" not in given[0] else ())) if name not in names
    ]:
        wrong = f"the model has no input {unknown[0]!r}; it has {', '.join(names)}"
        raise SourceError(with_hint(wrong, unknown[0], names), code="E_SHAPES")
    if set(shapes) == set(names):
        return {name: torch.randn(shapes[name], generator=torch.Generator().manual_seed(0)) for name in names}
    example = ",".join(f"{name}:1x128" for name in names)
    raise SourceError(
        f"TorchScript does not say the shapes of its inputs; give --inputs, or for floats their sizes in the place of "
        f"these: --shapes {example}",
        code="E_SHAPES",
    )


def _examples_like(names: list[str], source: Source) -> list[Mapping[str, Any]]:
    """As the first file of the model takes them, by name or by their order; and images with their channels first."""
    import torch

    by_name = {name: (sizes, dtype) for name, sizes, dtype in source.like}
    if set(by_name) != set(names):
        by_name = dict(zip(names, by_name.values(), strict=False))
    if missing := [name for name in names if name not in by_name]:
        raise SourceError(f"{source.text} takes {len(names)} inputs, and no other file has {missing[0]}")
    found = {name: torch.zeros(by_name[name][0], dtype=getattr(torch, by_name[name][1])) for name in names}
    images = {name: each.permute(0, 3, 1, 2).contiguous() for name, each in found.items() if each.dim() == _IMAGE}
    return [found, {**found, **images}] if images else [found]


KIND = TorchFile
