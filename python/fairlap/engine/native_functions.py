"""Native functions that are timed without Python: an address, a ctypes function or a capsule."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairlap.engine import _native
from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest, shown

_NEEDS_INTERPRETER_LOCK = 4  # FUNCFLAG_PYTHONAPI, set on functions of ctypes.PyDLL and PYFUNCTYPE


@dataclass(frozen=True)
class NativeFunction:
    """``void f(void *context)`` at an address. ``owner`` keeps whatever the address lives in alive.

    A function that takes no argument may be given as well. It must not need the interpreter lock.
    """

    address: int
    context: int = 0
    name: str = "native function"
    owner: object = None
    notices: tuple[Notice, ...] = ()  # what to know before trusting a figure of it

    def __post_init__(self) -> None:
        for field, value in (("address", self.address), ("context", self.context)):
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
                raise InvalidRequest(
                    f"the {field} of a native function must be an unsigned integer, not {shown(value)}"
                )
        if self.address == 0:
            raise InvalidRequest("the address of a native function must not be zero")


def native_function_of(call: object) -> NativeFunction | None:
    """Find the native function behind an object, or return None when it is an ordinary Python callable."""
    if isinstance(call, NativeFunction):
        return call
    if type(call).__name__ == "PyCapsule":
        return _of_capsule(call)
    ctypes = sys.modules.get("_ctypes")  # Not imported: then nothing can be one of its functions.
    if ctypes is not None and isinstance(call, ctypes.CFuncPtr):
        return _of_ctypes(call)
    return None


def _of_capsule(capsule: Any) -> NativeFunction:
    try:
        address, context, name = _native.capsule_function(capsule)
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
    return NativeFunction(address, context, name, owner=capsule)


def _of_ctypes(function: object) -> NativeFunction:
    import ctypes

    name = getattr(function, "__name__", "ctypes function")
    if getattr(type(function), "_flags_", 0) & _NEEDS_INTERPRETER_LOCK:
        raise InvalidRequest(
            f"{name} needs the interpreter lock (it comes from PyDLL or PYFUNCTYPE) and would crash without it; "
            "wrap it in a lambda to time it as a Python call"
        )
    arguments: tuple[Any, ...] = tuple(getattr(function, "argtypes", None) or ())
    if len(arguments) > 1:
        raise InvalidRequest(
            f"{name} takes {len(arguments)} arguments; a function timed natively takes one pointer or nothing. "
            "Wrap it in a lambda to time it through ctypes"
        )
    structures = (ctypes.Structure, ctypes.Union)
    by_value = (ctypes.c_float, ctypes.c_double, ctypes.c_longdouble, ctypes.py_object, *structures)
    if any(isinstance(kind, type) and issubclass(kind, by_value) for kind in arguments):
        raise InvalidRequest(
            f"{name} takes a {arguments[0].__name__} by value; a function timed natively takes one pointer or "
            "nothing. Wrap it in a lambda to time it through ctypes"
        )
    # A structure comes back through a hidden pointer, a long double on a stack that the caller must clear.
    returned: Any = getattr(function, "restype", None)
    not_droppable = (ctypes.c_longdouble, ctypes.py_object, *structures)
    if isinstance(returned, type) and issubclass(returned, not_droppable):
        raise InvalidRequest(
            f"{name} returns a {returned.__name__}, which a function timed natively cannot; "
            "wrap it in a lambda to time it through ctypes"
        )
    address = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    return NativeFunction(address or 0, 0, name, owner=function)


def address_of_argument(argument: object) -> int:
    """Find the pointer to hand to a native function: an integer, an array, a ctypes pointer, or any ctypes object."""
    import ctypes

    if isinstance(argument, int) and not isinstance(argument, bool):
        if not 0 <= argument < 2**64:
            raise InvalidRequest(f"the address handed to a native function must be unsigned, not {argument}")
        return argument
    if isinstance(argument, ctypes.c_void_p):
        return argument.value or 0
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    try:
        if isinstance(argument, ctypes._Pointer):
            return ctypes.cast(argument, ctypes.c_void_p).value or 0
        return ctypes.addressof(argument)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidRequest(
            "a native function takes one pointer: an integer address, an array of NumPy, a ctypes pointer or a ctypes "
            f"object, not {argument!r}"
        ) from None


def run_native(address: int, context: int) -> None:
    """Call it once, untimed and through ctypes."""
    import ctypes

    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(context)
