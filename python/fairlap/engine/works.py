"""A callable with its arguments and its completion, checked and made ready for the native loop."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from fairlap.engine import _native
from fairlap.engine.native_functions import NativeFunction, address_of_argument, native_function_of
from fairlap.errors import WrongRequest, shown


def python_work(
    fn: object, args: tuple[object, ...], kwargs: Mapping[str, object] | None, done: object
) -> _native.PythonCall:
    if not callable(fn):
        raise WrongRequest(f"the thing to time must be callable, not {shown(fn)}")
    if done is None and _only_makes_something_to_run(fn):
        raise WrongRequest(
            f"calling {name_of(fn)} runs none of its body, since it is an async function or a "
            "generator; wrap it (lambda: asyncio.run(f())) or give what runs it as done="
        )
    if not isinstance(args, tuple):
        raise WrongRequest(f"args must be a tuple, not {type(args).__name__}; write args=(x,) for one argument")
    if isinstance(done, NativeFunction):
        raise WrongRequest("a native done goes with a native fn; give a Python callable that waits instead")
    if done is not None and not callable(done):
        raise WrongRequest(f"done must be callable, not {shown(done)}")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise WrongRequest(f"kwargs must be a mapping, not {type(kwargs).__name__}")
    keywords = dict(kwargs or {})
    if not all(isinstance(key, str) for key in keywords):
        raise WrongRequest("the names in kwargs must be strings")
    return _native.PythonCall(fn, args, keywords, done)


def _only_makes_something_to_run(fn: object) -> bool:
    called = [fn, getattr(type(fn), "__call__", None)]  # noqa: B004  (it may be async)
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    try:
        return any(is_kind(each) for each in called for is_kind in kinds)
    except Exception:  # an object whose attributes raise is no function
        return False


def name_of(fn: object) -> str:
    """What a reader calls this callable. Its attributes may be as rude as they like."""
    try:
        inner = getattr(fn, "func", fn)  # functools.partial
        return str(getattr(inner, "__qualname__", None) or type(inner).__qualname__)
    except Exception:
        return type(fn).__qualname__


def native_work(
    native: NativeFunction, args: tuple[object, ...], kwargs: Mapping[str, object] | None, done: object
) -> _native.NativeCall:
    if kwargs:
        raise WrongRequest(f"{native.name} is timed natively and takes no keyword arguments")
    if not isinstance(args, tuple) or len(args) > 1:
        raise WrongRequest(f"{native.name} is timed natively and takes one pointer or nothing; args={args!r}")
    context = address_of_argument(args[0]) if args else native.context
    completion = native_function_of(done) if done is not None else None
    if done is not None and completion is None:
        raise WrongRequest(
            f"{native.name} is timed natively, so done must be native too; wrap {native.name} in a lambda "
            "to combine it with a Python completion"
        )
    if completion is None:
        return _native.NativeCall(native.address, context)
    return _native.NativeCall(native.address, context, completion.address, completion.context)
