"""The files of a request that names several of one model, as sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from fairlap.models.spec import Tensor
from fairlap.request.fields.source import Form, Source


def texts_of(text: str) -> tuple[str, ...]:
    """``model.onnx,saved_model/``: what names each file."""
    return tuple(part.strip() for part in text.split(","))


def sources_of(source: Source, like: Sequence[Form] = ()) -> tuple[Source, ...]:
    """Name each file as a source. What binds sizes and inputs is of the first one, whose inputs the others take."""
    first, *others = texts_of(source.text)
    whole = msgspec.structs.replace(source, text=first, exports=(), export=0, exported=True, files=())
    further = [
        _with_loss(
            Source(
                text,
                path,
                source.folder,
                trust=source.trust,
                like=tuple(like),
                custom_ops=source.custom_ops,
                exported=True,
            ),
            source,
        )
        for text, path in zip(others, source.exports, strict=True)
    ]
    return (whole, *further)


def _with_loss(own: Source, whole: Source) -> Source:
    """Of a kind that has gradients; another one is opened as for inference."""
    from fairlap.models.sources.registry import require_kind  # which imports the kind of several files

    if not whole.loss or require_kind(own).no_gradients:
        return own
    return msgspec.structs.replace(own, loss=whole.loss, labels=whole.labels)


def forms_of(inputs: Sequence[Tensor]) -> tuple[Form, ...]:
    return tuple((tensor.name, tensor.sized(1), tensor.dtype) for tensor in inputs)


def folder_of(folder: Path, number: int) -> Path:
    """Find the folder of one file's bundle; the first file has that of all."""
    return folder / f"export-{number}" if number else folder
