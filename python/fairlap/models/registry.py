"""Models by their names: built-in ones, those of installed packages, and those that a user has opened.

What reads users' models takes long to import, and is imported when one is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlap.errors import InvalidRequest, described
from fairlap.models.names import built_in_packages, former_names, model_packages
from fairlap.models.spec import Spec
from fairlap.request.fields.data.training_data import ItemSizes
from fairlap.request.fields.source import why_no_callable
from fairlap.suggestions import did_you_mean, nearest

if TYPE_CHECKING:
    from fairlap.models.operations.operation import Operation

_REQUEST_FILE = ".toml"
_MOST_NAMED = 5
_OPERATIONS = "fairlap.bench_models.operations"


@dataclass(frozen=True)
class Model:
    """A model and the package that implements it, or the folder of a user's model that was opened.

    One package has all sizes of a family, and another one all operations, so its name is followed by a colon and the
    size, or the name of the operation.
    """

    spec: Spec
    package: str


def spec_at(package: str, sizes: ItemSizes | None = None) -> Spec:
    """Of a model that follows its data, with the sizes of the data."""
    if package.startswith("/"):
        from fairlap.models.sources.bundle import bundle_in

        return bundle_in(Path(package)).spec
    if operation := _operation_in(package):
        return operation.spec()
    module = _spec_module(package)
    spec: Spec = module.SPEC if sizes is None else module.sized_for(sizes)
    return spec


def _spec_module(package: str) -> Any:
    """Import the module ``spec`` of a model; of a family, make what its ``in_size`` returns for the size."""
    code, _, size = package.partition(":")
    module = import_module(f"{code}.spec")
    return module.in_size(size) if size else module


def follows_data(package: str) -> bool:
    """Whether the sizes of the model are those of the data that it learns: its ``spec.sized_for`` gives them."""
    if package.startswith("/") or _operation_in(package):
        return False
    return hasattr(_spec_module(package), "sized_for")


def free_sizes_at(package: str) -> Mapping[str, tuple[int, int]]:
    """Find the sizes of a model's inputs, besides the batch, that may be others with the same weights.

    Returns the smallest and the largest of each, by name. ``spec_with`` gives the model in them, and so does ``build``
    of its ONNX graph.
    """
    if package.startswith("/") or _operation_in(package):
        return {}
    found: Mapping[str, tuple[int, int]] = getattr(_spec_module(package), "FREE_SIZES", {})
    return found


def spec_with(package: str, free_sizes: Mapping[str, int]) -> Spec:
    spec: Spec = _spec_module(package).with_sizes(**free_sizes)
    return spec


def implementation_at(package: str, framework: str) -> Any:
    """Find the model as that framework's experts would write it: ``<package>.<framework>_model``.

    Of a user's model it is an object with the same functions.
    """
    if package.startswith("/"):
        from fairlap.models.sources.bundle import implementation_in

        return implementation_in(Path(package), framework)
    return _code_of(package, f"{framework}_model")


def implementation_for(package: str, framework: str, batch: int) -> Any:
    """Find it as ``implementation_at`` does; one that is made from a graph is made for the batch."""
    found = implementation_at(package, framework)
    return found.for_batch(batch) if hasattr(found, "for_batch") else found


def route_at(package: str, framework: str) -> str:
    """Say how a built-in model gets into a framework for which it is not written; empty where it is."""
    if package.startswith("/") or _operation_in(package):
        return ""
    code = package.partition(":")[0]
    shared: str = getattr(import_module(f"{code}.spec"), "IMPLEMENTED_IN", code)
    own = find_spec(f"{code}.{framework}_model") is not None
    module = f"{code if own else shared}.{framework}_model"
    if shared == code or find_spec(module) is None:
        return ""
    return getattr(getattr(import_module(module), "Implementation", None), "ROUTE", "")


def why_not_at(package: str, framework: str, implementation: str) -> str:
    """Why a framework cannot run the model, as far as the model knows; empty where it can."""
    operation = _operation_in(package)
    return import_module(operation.implemented_in).why_not(operation, framework, implementation) if operation else ""


def reference_at(package: str) -> Any:
    """Find what has the ``forward`` of a model's reference."""
    return _code_of(package, "reference")


def _code_of(package: str, module: str) -> Any:
    """Import the model's own module of that name.

    Where its spec names another package in ``IMPLEMENTED_IN``, one that implements several models, the module there
    serves, or its ``Implementation`` of this spec.
    """
    if operation := _operation_in(package):
        return import_module(f"{operation.implemented_in}.{module}").Implementation(operation)
    code = package.partition(":")[0]
    shared: str = getattr(import_module(f"{code}.spec"), "IMPLEMENTED_IN", code)
    own = shared == code or find_spec(f"{code}.{module}") is not None
    found = import_module(f"{code if own else shared}.{module}")
    return found.Implementation(_spec_module(package)) if hasattr(found, "Implementation") else found


def packages_of_code(package: str) -> tuple[str, ...]:
    """List the packages to import for a built-in model: its own, and the one that its spec names for its code."""
    own = package.partition(":")[0]
    if _operation_in(package):
        return (own,)
    return tuple(dict.fromkeys((own, getattr(import_module(f"{own}.spec"), "IMPLEMENTED_IN", own))))


def _file_meant(name: str) -> str:
    """Name a file beside the one that is not there, whose suffix may be mistyped."""
    folder, file = os.path.split(name)
    if not os.path.isdir(folder or "."):  # noqa: PTH112  (a Path raises where the text is too long)
        return ""
    others = os.listdir(folder or ".")  # noqa: PTH208  (as above)
    if not len(suffix := Path(name).suffix) > 1 or not set(suffix) <= set(_REQUEST_FILE):
        return did_you_mean(file, others)
    requests = sorted(each for each in others if each.endswith(_REQUEST_FILE))
    few = ", ".join(requests[:_MOST_NAMED]) + (", ..." if len(requests) > _MOST_NAMED else "")
    listed = f"the request files here are {few}" if requests else f"no request file ({_REQUEST_FILE}) is here"
    return did_you_mean(file, requests) or listed


def find(name: str, sizes: ItemSizes | None = None) -> Model:
    """Find it by its name, or by the one that it had before it was in a family."""
    built_in = built_in_packages()
    name = former_names().get(name, name)
    packages = built_in if name in built_in else model_packages()
    if name not in packages:
        from fairlap.models.operations.kinds import operation_named

        if (operation := operation_named(name)) is not None:
            return Model(operation.spec(), f"{_OPERATIONS}:{name}")

        if why := why_no_callable(name):
            raise InvalidRequest(f"{name} is not a model: {why}")
        known = _what_it_is(name) if Path(name).suffix or "/" in name else ""
        if os.path.isdir(name) and not known:  # noqa: PTH112  (a Path raises where the text is too long)
            raise InvalidRequest(
                f"{name} is a folder without a saved_model.pb; give a file in it, or hf:{name} if transformers wrote it"
            )
        if Path(name).suffix or "/" in name:
            if not known and not os.path.lexists(name):
                raise InvalidRequest(f"there is no file {name}; {_file_meant(name) or _files_read()}")
            raise InvalidRequest(f"{name} is not a model file that fairlap reads; {known or _files_read()}")
        raise InvalidRequest(_no_model(name, packages))
    package = packages[name]
    try:
        spec = spec_at(package, sizes)
    except (Exception, SystemExit) as error:
        if sizes is not None and isinstance(error, InvalidRequest):  # it cannot have these sizes
            raise
        raise InvalidRequest(f"the model {name} from {package} cannot be loaded: {described(error)}") from error
    if not isinstance(spec, Spec):
        raise InvalidRequest(f"{package}.spec.SPEC is a {type(spec).__name__}, not a Spec")
    return Model(spec, package)


def _no_model(name: str, known: Collection[str]) -> str:
    from fairlap.models.operations.listed import nearest_names

    if "," in name:
        spaced = " ".join(part.strip() for part in name.split(","))
        return f"no model named {name!r}; to race several, separate them with spaces: {spaced}"
    family, _, size = name.partition(":")
    if sizes := sorted(each for each in known if each.startswith(f"{family}:")):
        wrong = f"{family} has no size {size!r}" if size else f"{family} needs a size"
        meant = nearest(size, (each.removeprefix(f"{family}:") for each in sizes))
        return f"{wrong}; it has {', '.join(sizes)}" + (f"; did you mean {family}:{meant[0]}?" if meant else "")
    near = [family] if family in known else nearest(name, known, most=3) or nearest_names(name)
    hint = f"did you mean {', '.join(near)}?" if near else "`fairlap list models` lists them"
    return f"no model named {name!r}; {hint}"


def _operation_in(package: str) -> Operation | None:
    code, _, name = package.partition(":")
    if code != _OPERATIONS:
        return None
    from fairlap.models.operations.kinds import operation_named

    return operation_named(name)


def _what_it_is(name: str) -> str:
    from fairlap.models.sources.file_contents import what_is_at

    return what_is_at(name)


def _files_read() -> str:
    from fairlap.models.sources.registry import kinds

    endings = sorted({suffix for kind in kinds() for suffix in kind.suffixes})
    folders = "a SavedModel is a folder with saved_model.pb, a model of MLflow one with MLmodel"
    return f"files end with {', '.join(endings)}; {folders}"
