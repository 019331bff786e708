"""What a kind of source gives to be trained: its gradients by what its own framework differentiates with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from fairlap.errors import InvalidRequest, described
from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import Route, SourceError
from fairlap.models.spec import Loss
from fairlap.models.training.reference import Batch, Slopes
from fairlap.request.fields.loss import CODE, CROSS_ENTROPY, MSE
from fairlap.request.fields.source import Source
from fairlap.suggestions import part_named

NATIVE = "native"
NO_GRADIENTS = "E_NO_GRADIENTS"
KINDS: dict[str, Loss] = {CROSS_ENTROPY: "cross_entropy", MSE: "square_error"}

SlopesOf = Callable[[Arrays, Batch, bool], Slopes]
"""Of weights and a batch, in the precision that the weights have; the flag asks for the model as it is in training."""

OutputsOf = Callable[[Arrays, Arrays], Mapping[str, Any]]
"""Of weights and inputs in float64, by name, in inference."""


@dataclass(frozen=True)
class Learner:
    trained: tuple[str, ...]  # names of the weights that training changes
    slopes: SlopesOf
    outputs: OutputsOf
    how: str  # the gradients are computed
    why_not_train: str = ""  # although it has gradients
    unused_are_constants: bool = False  # weights that the loss does not depend on; else they are refused
    padding: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # rows kept from a gradient, by the weight
    how_to_freeze: str = "freeze what is not to be trained with requires_grad_(False)"
    cut_off_by: str = "detach(), no_grad() and .data"  # in the user's code


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


def own_loss_on(framework: str, source: Source, folder: Path) -> Callable[[], Any] | None:
    """Make the loss for a model that was converted, when it is built; None for a loss with a name."""
    if not is_code(source.loss):
        return None
    from fairlap.models.sources.learning.loss_graph import loss_on

    return partial(loss_on, framework, source, folder)


def one_number(value: Any, source: Source) -> Any:
    """Return what a loss gave, or refuse it where it is not a single number."""
    shape = tuple(getattr(value, "shape", ()))
    if shape:
        raise SourceError(f"--loss {source.loss} gives {list(shape)} numbers; return their mean", code=CODE)
    return value
