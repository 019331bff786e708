"""A source that has been opened, as files in a folder that the parent and every contestant read."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from fairlap.errors import reason_of
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.models.sources.contract import Bundle, Route, SourceError
from fairlap.models.sources.registry import kind_at
from fairlap.request.fields.data.corruption import TYPOS

BUNDLE = "bundle.json"
GROUPS = "groups"  # in the file of labels: the number of each item's group
LITERT_FILE = "model.tflite"  # that LiteRT runs as it is, where the folder has it


def weights_file(folder: Path) -> Path:
    return folder / "weights.safetensors"


def inputs_file(folder: Path, which: str) -> Path:
    return folder / f"{which}.safetensors"


def reference_file(folder: Path, which: str) -> Path:
    return folder / f"reference-{which}.safetensors"


def labels_file(folder: Path) -> Path:
    return folder / "labels.safetensors"


def data_file(folder: Path, number: int) -> Path:
    """One batch of the data for a metric."""
    return folder / f"data-{number:06}.safetensors"


def mistyped_file(folder: Path, severity: int, number: int) -> Path:
    """One batch of these data, whose texts have typing errors."""
    return folder / f"data-{TYPOS}-{severity}-{number:06}.safetensors"


def write_bundle(folder: Path, bundle: Bundle) -> None:
    """Last of all files: a folder with it is whole."""
    beside = folder / f"{BUNDLE}.part"
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(bundle), indent=1))
    beside.replace(folder / BUNDLE)


@cache
def bundle_in(folder: Path) -> Bundle:
    try:
        return msgspec.json.decode((folder / BUNDLE).read_bytes(), type=Bundle)
    except (OSError, *NOT_THE_DOCUMENT) as error:
        raise SourceError(f"{folder} does not hold an opened source: {reason_of(error)}") from None


def route_to(bundle: Bundle, framework: str, implementation: str) -> Route:
    """Find the route to a framework, which goes before one to ``implementation``.

    ``implementation`` is which of a model's implementations the framework runs.
    """
    kind = kind_at(bundle.kind).title
    found = bundle.routes.get(framework) or bundle.routes.get(implementation or framework)
    return found or Route(why_not=f"there is no conversion from {kind} to {framework}")


_implementations: dict[str, Any] = {}  # of this process, which runs one contestant


def implementation_in(folder: Path, framework: str) -> Any:
    """Make what a model's package has as ``<framework>_model``."""
    if framework not in _implementations:
        bundle = bundle_in(folder)
        _implementations[framework] = kind_at(bundle.kind).implementation(bundle, folder, framework)
    return _implementations[framework]


def conversion_s(route: Route) -> float | None:
    """How long the conversion took: when the model was opened, and in this process. None without one."""
    here = [each.conversion_s for each in _implementations.values() if hasattr(each, "conversion_s")]
    parts = [*here, *([] if route.conversion_s is None else [route.conversion_s])]
    return sum(parts) if parts else None
