"""A callable with its arguments and its completion, checked and made ready for the native loop."""

from __future__ import annotations

from collections.abc import Mapping

from fairlap.engine import _native
from fairlap.engine.native_functions import NativeFunction, address_of_argument, native_function_of
from fairlap.errors import WrongRequest


def python_work(
    fn: object, args: tuple[object, ...], kwargs: Mapping[str, object] | None, done: object
) -> _native.PythonCall:
    if not callable(fn):
        raise WrongRequest(f"the thing to time must be callable, not {fn!r}")
    if not isinstance(args, tuple):
        raise WrongRequest(f"args must be a tuple, not {type(args).__name__}; write args=(x,) for one argument")
    if isinstance(done, NativeFunction):
        raise WrongRequest("a native done goes with a native fn; give a Python callable that waits instead")
    if done is not None and not callable(done):
        raise WrongRequest(f"done must be callable, not {done!r}")
    keywords = dict(kwargs or {})
    if not all(isinstance(key, str) for key in keywords):
        raise WrongRequest("the names in kwargs must be strings")
    return _native.PythonCall(fn, args, keywords, done)


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
