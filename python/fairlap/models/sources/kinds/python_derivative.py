"""A derivative of ``module:function``, a function of a point and the module of its arrays: ``def norm(x, np)``.

The same function runs in every library, and in NumPy for the reference, whose complex steps must agree with small
differences. It runs here without trust, as ``python_function`` does it: the user named it on the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np

from fairlap.errors import described
from fairlap.models.arrays import Arrays
from fairlap.models.draw import draw_inputs
from fairlap.models.sources.callables.functions import function_in
from fairlap.models.sources.contract import Bundle, Opened, Route, SourceError, SourceKind
from fairlap.models.sources.sizes import fill_of, require_known_ranges
from fairlap.models.spec import Spec, Tensor
from fairlap.request.fields.source import PREFIX_OF_DERIVATIVES, Source
from fairlap.request.work import Mode

_POINT = "point"
_FUNCTIONS = "fairlap.bench_models.differentiated_functions"
_LIBRARIES = ("torch", "jax", "tensorflow")
_STEP = 1e-6
_APART = 1e-5  # relative: what a difference with this step may be off by


class PythonDerivative(SourceKind):
    title = "a derivative of a Python function"
    no_gradients = "its calls are derivatives already"

    @classmethod
    def recognises(cls, text: str) -> bool:
        return text.startswith(PREFIX_OF_DERIVATIVES)

    @classmethod
    def files(cls, source: Source) -> tuple[Path, ...]:
        return ()

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        mode, function = _mode_of(source), _function_of(source)
        spec = function.spec()
        if mode not in spec.modes:
            raise SourceError(
                f"{source.text} has no {mode}, which is of a function with "
                f"{'weights' if mode == 'per-sample' else 'one output'}; it has {', '.join(spec.modes[1:])}"
            )
        reference = _implementation(function, "reference")
        reference.differentiate(mode)
        _require_steps(source, reference, spec)
        spec = spec.in_mode(mode)
        return Opened(
            inputs=tuple(of_one_point(each) for each in spec.inputs),
            outputs=tuple(each.name for each in spec.outputs),
            output_types={each.name: each.dtype for each in spec.outputs},
            weights={},
            forward=reference.forward,
            routes={name: Route("native", holds_weights=False, precisions=("fp32",)) for name in _LIBRARIES},
            reference="complex steps through the function in NumPy, in float64",
            precisions=("fp32",),
            modes=(mode,),
            items=1,
        )

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        return _implementation(_function_of(bundle.source), f"{framework}_model")


def _mode_of(source: Source) -> Mode:
    mode = source.path.removeprefix(PREFIX_OF_DERIVATIVES).partition(":")[0]
    assert mode in get_args(Mode)
    return mode  # type: ignore[return-value]


def _function_of(source: Source) -> Any:
    """As one of the built-in functions. Called once, since its answer decides how many outputs there are."""
    name = source.path.removeprefix(PREFIX_OF_DERIVATIVES).partition(":")[2]
    own, numbers = function_in(source.folder, name), _numbers_of(source)
    require_known_ranges([_POINT], source)
    fill = fill_of(_POINT, "float32", None, source)
    kinds = import_module(f"{_FUNCTIONS}.function")

    def value(point: Any, arrays: Any, _weights: Arrays) -> Any:
        return own(point, arrays)

    function = kinds.Function(source.text, "", "", value, numbers, fill=fill, of_one=True)
    try:
        found = np.asarray(own(_drawn(function.spec()), np))
    except (Exception, SystemExit) as error:
        raise SourceError(
            f"{source.text} raised {described(error)}; write it as a function of a point and the module of its "
            f"arrays, def {name.rpartition(':')[2]}(x, np), with what NumPy, PyTorch and jax.numpy have alike"
        ) from error
    if found.ndim > 1 or found.dtype.kind != "f":
        raise SourceError(
            f"{source.text} returned {found.dtype} of shape {list(found.shape)}; return one number or a row of them"
        )
    outputs = None if found.ndim == 0 else len(found)
    return kinds.Function(source.text, "", "", value, numbers, outputs, fill, of_one=True)


def _numbers_of(source: Source) -> int:
    shapes = dict(source.shapes)
    sizes = shapes.get(_POINT, ())
    if list(shapes) != [_POINT] or len(sizes) != 1:
        raise SourceError(f"say how many numbers a point of {source.text} has: --shapes {_POINT}:100", code="E_SHAPES")
    return int(sizes[0])


def _drawn(spec: Spec) -> Any:
    return draw_inputs(spec, 1, seed=0)[_POINT][0].astype(np.float64)


def _implementation(function: Any, module: str) -> Any:
    return import_module(f"{_FUNCTIONS}.{module}").Implementation(SimpleNamespace(FUNCTION=function))


def _require_steps(source: Source, reference: Any, spec: Spec) -> None:
    """Refuse a function whose complex step is not its derivative, such as one that takes an absolute value."""
    point = _drawn(spec)
    along = np.random.default_rng(0).standard_normal(point.shape)
    value: Callable[[Any], Any] = reference.value_at
    by_difference = (value(point + _STEP * along) - value(point - _STEP * along)) / (2 * _STEP)
    by_step = np.imag(value(point + 1e-100j * along)) / 1e-100
    if not np.isfinite(by_difference).all():
        raise SourceError(
            f"{source.text} is not finite at a point that was drawn, or beside it; name what may be drawn, such as "
            f"--range {_POINT}:0.5..2",
            code="E_SOURCE_INPUTS",
        )
    size = float(np.abs(by_difference).max()) + float(np.abs(value(point)).max())
    if not np.abs(by_step - by_difference).max() <= _APART * size:
        raise SourceError(
            f"the derivative of {source.text} cannot be proven: its complex step differs from a small difference; "
            "take x * x or np.where(x > 0, x, -x) in place of an absolute value, and no conjugates or norms"
        )


def of_one_point(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=tensor.sized(1))


KIND = PythonDerivative
