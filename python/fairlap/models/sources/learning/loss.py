"""The loss that a user asks for of their own model: one with a name, or a function of theirs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

from fairlap.errors import InvalidRequest, described
from fairlap.models.sources.contract import Route, SourceError
from fairlap.models.spec import Loss
from fairlap.request.fields.loss import CODE, CROSS_ENTROPY, MSE
from fairlap.request.fields.source import Source
from fairlap.suggestions import part_named

NATIVE = "native"
NO_GRADIENTS = "E_NO_GRADIENTS"
KINDS: dict[str, Loss] = {CROSS_ENTROPY: "cross_entropy", MSE: "square_error"}


def kind_of_loss(text: str) -> Loss:
    return KINDS.get(text, "own")


def is_code(loss: str) -> bool:
    """Whether a loss that is asked for is a function of the user's."""
    return bool(loss) and kind_of_loss(loss) == "own"


def with_learning(route: Route, *, other: bool) -> Route:
    """Add why a conversion cannot be trained as the original is.

    ``other`` says that the model computes something else in training than in inference.
    """
    if route.why_not or route.name.startswith(NATIVE):
        return route
    if other and not route.in_training:
        why = "the model computes something else in training, by batch normalisation or code, and is converted without"
        return msgspec.structs.replace(route, no_training=why)
    return route


def require_trusted_loss(source: Source) -> None:
    """Refuse code of the user's for a file that is read where no code runs."""
    if is_code(source.loss) and not source.trust:
        raise SourceError(
            f"--loss {source.loss} is code, and a file that is not trusted is read where none runs; add --trust if you "
            "trust it, or use cross_entropy or mse",
            code="E_SOURCE_TRUST",
        )


def own_loss(source: Source) -> Callable[[Any, Any], Any] | None:
    """Find the user's function of outputs and labels, in the current folder first; None for a loss with a name."""
    if source.loss in KINDS:
        return None
    module_name, _, path = source.loss.partition(":")
    sys.path.insert(0, source.folder)
    try:
        found = part_named(import_module(module_name), path, module_name)
    except InvalidRequest as error:
        raise SourceError(f"--loss {source.loss}: {error}", code=CODE) from None
    except (Exception, SystemExit) as error:
        raise SourceError(f"--loss {source.loss} cannot be imported: {described(error)}", code=CODE) from error
    finally:
        sys.path.remove(source.folder)
    if not callable(found):
        raise SourceError(f"--loss {source.loss} is not a function of outputs and labels", code=CODE)
    loss: Callable[[Any, Any], Any] = found
    return loss


def one_number(value: Any, source: Source) -> Any:
    """Return what a loss gave, or refuse it where it is not a single number."""
    shape = tuple(getattr(value, "shape", ()))
    if shape:
        raise SourceError(f"--loss {source.loss} gives {list(shape)} numbers; return their mean", code=CODE)
    return value
