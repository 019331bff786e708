"""GGUF files: raced by their answers, as they are in llama.cpp, elsewhere with weights that are expanded to float32."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from fairlap.engine.measurement import Notice
from fairlap.models.sources.contract import Bundle, Learner, Opened, Route, SourceError, SourceKind
from fairlap.models.sources.gguf_files.gguf_models import (
    MAGIC,
    GgufModel,
    GgufOnDisk,
    bounds_of,
    module_of_gguf,
    module_with,
    named_types,
    read_gguf,
)
from fairlap.models.sources.python_models.generating.generating_models import (
    implementation_of_generating,
    opened_generating,
    reference_of_generating,
    require_nothing_else,
)
from fairlap.request.fields.source import Source

_MODEL = "gguf-model.json"
_LLAMA_CPP = "llama-cpp"
_EXPANDED = "expanded to float32 from GGUF"


class GgufFile(SourceKind):
    title = "GGUF"
    suffixes = (".gguf",)
    generates = True

    @classmethod
    def check(cls, source: Source) -> None:
        path = Path(source.path)
        try:
            with path.open("rb") as file:
                start = file.read(len(MAGIC))
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror}") from None
        if start != MAGIC:
            raise SourceError(f"{source.shown} is damaged, or not a GGUF file")
        if not source.generate:
            raise SourceError(
                f"{source.shown}: a GGUF file is raced by its answers; add --generate 64:32, the tokens of a prompt "
                "and of an answer",
                code="E_SHAPES",
            )
        require_nothing_else(source)

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        model, weights = read_gguf(Path(source.path), source.shown)
        (folder / _MODEL).write_bytes(msgspec.json.encode(model))
        found = opened_generating(
            source,
            folder,
            lambda: (module_with(model, weights, source.shown), ""),
        )
        routes = {
            name: route if route.why_not else msgspec.structs.replace(route, name=f"{_EXPANDED}, {route.name}")
            for name, route in found.routes.items()
        }
        return replace(
            found,
            routes={**routes, "torch": Route(_EXPANDED), _LLAMA_CPP: _native(model)},
            reference="a PyTorch module with the expanded weights in float64, without a cache",
            notices=(*found.notices, *_notices(model)),
        )

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        if framework == _LLAMA_CPP:
            return GgufOnDisk(Path(bundle.source.path), tuple(named_types(_model_in(folder))))
        return implementation_of_generating(bundle, folder, framework, lambda: _empty(folder))

    @classmethod
    def learner(cls, source: Source, folder: Path) -> Learner:
        """Give outputs alone, to other tokens than those that were drawn."""
        return reference_of_generating(source, lambda: _empty(folder))


def _model_in(folder: Path) -> GgufModel:
    return msgspec.json.decode((folder / _MODEL).read_bytes(), type=GgufModel)


def _empty(folder: Path) -> Any:
    return module_of_gguf(_model_in(folder))


def _native(model: GgufModel) -> Route:
    """llama.cpp rounds what it multiplies to the types of the weights, so an answer is right in their bounds."""
    return Route("native", holds_weights=False, bounds=bounds_of(model))


def _notices(model: GgufModel) -> list[Notice]:
    if not (types := list(named_types(model))):
        return []
    text = f"the file holds weights in {', '.join(types)}, to which they were rounded when it was written"
    return [Notice("W_FILE_PRECISION", text)]


KIND = GgufFile
