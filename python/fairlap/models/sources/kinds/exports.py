"""Several files of one model, ``model.onnx,model.tflite,saved_model/``: each in the frameworks that read it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlap.models.sources.contract import Bundle, Learner, Opened, SourceError, SourceKind
from fairlap.models.sources.exports.files import sources_of, texts_of
from fairlap.models.sources.exports.learning import NO_TRAINING, require_gradients
from fairlap.models.sources.exports.opened_files import opened_files
from fairlap.models.sources.file_contents import require_own_content
from fairlap.models.sources.registry import kinds, require_kind
from fairlap.request.fields.source import Source


class Exports(SourceKind):
    title = "files of one model"
    no_gradients = ""  # of those that have some

    @classmethod
    def recognises(cls, text: str) -> bool:
        """Only where every part is a file or folder that another kind reads; a file may have a comma in its name."""
        parts = texts_of(text)
        return len(parts) > 1 and not os.path.lexists(text) and all(map(_is_file_of_a_kind, parts))

    @classmethod
    def parts_of(cls, text: str) -> tuple[str, ...]:
        return texts_of(text)

    @classmethod
    def files(cls, source: Source) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(file for own, kind in _parts(source) for file in kind.files(own)))

    @classmethod
    def readable(cls, source: Source) -> tuple[Path, ...]:
        return tuple(path for own, kind in _parts(source) for path in kind.readable(own))

    @classmethod
    def check(cls, source: Source) -> None:
        paths = (source.path, *source.exports)
        if twice := [path for path in paths if paths.count(path) > 1]:
            raise SourceError(f"{source.text} names {twice[0]} twice")
        if source.metrics:
            raise SourceError(
                f"--metric scores a model in one file; name one of {', '.join(source.file_names)}", code="E_METRIC"
            )
        require_gradients(*next(_parts(source)))
        for own, kind in _parts(source):
            path = Path(own.path)
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise SourceError(f"{own.text} is neither a file nor a folder")
            require_own_content(kind, path, own.text)
            kind.check(own)

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        return opened_files(source, folder)

    @classmethod
    def learner(cls, source: Source, folder: Path) -> Learner:
        """Of the first file; the others have bundles of their own."""
        first, kind = next(_parts(source))
        return replace(kind.learner(first, folder), why_not_train=NO_TRAINING)

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        """Build for the first file; the other files have bundles of their own."""
        first = sources_of(bundle.source)[0]
        return require_kind(first).implementation(bundle, folder, framework)


def _parts(source: Source) -> Iterator[tuple[Source, type[SourceKind]]]:
    return ((own, require_kind(own)) for own in sources_of(source))


def _is_file_of_a_kind(text: str) -> bool:
    found = next((kind for kind in kinds() if kind is not Exports and kind.recognises(text)), None)
    return found is not None and (bool(found.suffixes) or os.path.isdir(text))  # noqa: PTH112  (as above)


KIND = Exports
