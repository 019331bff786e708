"""C functions of shared libraries with their arguments, timed without Python: ``libm.so.6:sin`` on ``f64:0.5``.

The engine times ``void f(void *)``. Here that is a small function in the engine that loads the arguments into the
registers of the calling convention and calls the C function.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlap.engine import _native
from fairlap.engine.measurement import Notice
from fairlap.engine.native_functions import NativeFunction
from fairlap.errors import InvalidRequest, shown
from fairlap.suggestions import did_you_mean

if TYPE_CHECKING:
    import numpy as np

_LIBRARY = re.compile(r"\.(so(\.\d+)*|dylib)$")
_INTEGERS = {"i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32",
             "i64": "int64", "u64": "uint64"}  # fmt: skip
_FLOATS = {"f32": "float32", "f64": "float64"}
TYPES = {**_INTEGERS, **_FLOATS}
_SCALAR = re.compile(r"(?P<type>\w+):(?P<value>[^:\[\]]+)")
_ARRAY = re.compile(r"(?P<type>\w+)\[(?P<size>\d+)\]")
_MOST_ELEMENTS = 2**33
_DRAWN_INTEGERS = 100  # below this
_WORDS = 8  # of the registers of either kind, in loop/c_call.hpp
_SEED = 0
_NONE = "void"  # as in C


@dataclass(frozen=True)
class Argument:
    """A number, or an array of so many drawn ones, which is handed over as a pointer."""

    type: str
    value: int | float = 0
    size: int | None = None


@dataclass(frozen=True)
class Signature:
    arguments: tuple[Argument, ...] = ()
    returns: str = ""  # a type; empty for nothing, or for what is not looked at
    is_given: bool = True  # not where nothing is said about arguments

    @property
    def shows_answers(self) -> bool:
        """Whether anything that a function computes can be seen: its arrays, or what it returns."""
        return bool(self.returns) or any(each.size is not None for each in self.arguments)


@dataclass(frozen=True)
class CFunction:
    """A function of a library with its own copies of its arguments."""

    native: NativeFunction
    arrays: Sequence[np.ndarray]
    returns: str
    _words: np.ndarray

    @property
    def returned(self) -> int | float | None:
        """What the last call returned; None where its type was not given."""
        if not self.returns:
            return None
        value: int | float = self._words[-1:].view(TYPES[self.returns])[0].item()
        return value


def is_of_library(name: str) -> bool:
    """Return whether the name is like ``./libfast.so:dot``, not MODULE:CALLABLE."""
    return bool(_LIBRARY.search(name.rpartition(":")[0]))


def c_function(name: str, arguments: str = "") -> NativeFunction:
    """Look up a function of a shared library, with arguments, to time it natively.

    ``name`` is ``LIBRARY:FUNCTION``; a library without a slash is looked up as the system's linker does. ``arguments``
    are numbers (``i32:7``, ``f64:0.5``) and arrays of drawn numbers, handed over as pointers (``f32[1000]``), with
    commas between them, in the order of the function's parameters; ``void`` for none. The arrays are not put back
    between calls.
    ``fairlap.measure(fairlap.c_function("libm.so.6:sin", "f64:0.5"))``.
    """
    if not isinstance(name, str) or not isinstance(arguments, str) or not is_of_library(name):
        raise InvalidRequest(
            f'c_function takes LIBRARY:FUNCTION and arguments, such as "libm.so.6:sin" and "f64:0.5", not {shown(name)}'
        )
    return loaded(name, signature_of(arguments)).native


def signature_of(text: str) -> Signature:
    """Parse ``f32[1000],i32:1000->f32``: the arguments in their order, and what the function returns."""
    listed, arrow, returns = (part.strip() for part in text.partition("->"))
    if arrow and returns not in TYPES:
        meant = did_you_mean(returns, TYPES) or f"the types are {', '.join(TYPES)}"
        raise InvalidRequest(f"{returns!r} is not what a C function returns here; {meant}")
    arguments = () if listed in ("", _NONE) else tuple(_argument(part.strip()) for part in listed.split(","))
    floats = sum(each.size is None and each.type in _FLOATS for each in arguments)
    most = _native.INTEGER_REGISTERS, _native.FLOAT_REGISTERS
    if not most[0]:
        raise InvalidRequest("C functions with arguments are timed on x86-64 and 64-bit Arm only")
    if floats > most[1] or len(arguments) - floats > most[0]:
        raise InvalidRequest(
            f"{text!r}: a C function gets up to {most[0]} whole numbers and arrays and {most[1]} floats here; wrap it "
            "in one with fewer"
        )
    return Signature(arguments, returns, is_given=bool(listed or arrow))


def _argument(text: str) -> Argument:
    scalar, array = _SCALAR.fullmatch(text), _ARRAY.fullmatch(text)
    found = scalar or array
    if found is None or found["type"] not in TYPES:
        raise InvalidRequest(
            f"{text!r} is not an argument such as i32:7, f64:0.5 or f32[1000]; the types are {', '.join(TYPES)}"
        )
    if array:
        size = int(array["size"])
        if not 0 < size <= _MOST_ELEMENTS:
            raise InvalidRequest(f"{text!r}: an array has from 1 to {_MOST_ELEMENTS:,} elements")
        return Argument(array["type"], size=size)
    assert scalar is not None
    return Argument(scalar["type"], _number(scalar["type"], scalar["value"]))


def _number(kind: str, text: str) -> int | float:
    import numpy as np

    try:
        if kind in _FLOATS:
            return float(text)
        value, limits = int(text, 0), np.iinfo(TYPES[kind])
    except ValueError:
        raise InvalidRequest(f"{text!r} is not a {'number' if kind in _FLOATS else 'whole number'}") from None
    if not limits.min <= value <= limits.max:
        raise InvalidRequest(f"{text} does not fit into {kind}")
    return value


def loaded(name: str, signature: Signature) -> CFunction:
    """Load the library, and draw the arrays: the same numbers for every function of this signature."""
    import numpy as np

    address, library = _address(name)
    try:
        arrays = _drawn(signature)
    except MemoryError:
        raise InvalidRequest(f"{name}: there is not enough memory for its arrays; make them smaller") from None
    pointers = iter(arrays)
    integers: list[int] = []
    floats: list[int] = []
    for each in signature.arguments:
        if each.size is not None:
            integers.append(next(pointers).ctypes.data)
        elif each.type in _INTEGERS:
            integers.append(int(each.value) % 2**64)
        else:
            bits = struct.pack("<f4x" if each.type == "f32" else "<d", each.value)
            floats.append(int.from_bytes(bits, "little"))
    padded = [each + [0] * (_WORDS - len(each)) for each in (integers, floats)]
    words = np.array([address, *padded[0], *padded[1], 0], dtype=np.uint64)
    call = _native.address_of_c_call(returns_float=signature.returns in _FLOATS)
    notices = () if signature.is_given else (_without_arguments(name),)
    native = NativeFunction(call, words.ctypes.data, name, owner=(library, words, arrays), notices=notices)
    return CFunction(native, arrays, signature.returns, words)


def _without_arguments(name: str) -> Notice:
    return Notice(
        "W_NO_ARGUMENTS",
        f"{name} is called without arguments: whatever parameters it has are 0, or what is left in memory; give it "
        f"--args, or --args {_NONE} where it has none",
    )


def _address(name: str) -> tuple[int, Any]:
    import ctypes

    path, _, symbol = name.rpartition(":")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be loaded: {error}") from None
    try:
        found = library[symbol]
    except AttributeError:
        raise InvalidRequest(f'{path} has no function {symbol!r}; C++ names are mangled unless extern "C"') from None
    return ctypes.cast(found, ctypes.c_void_p).value or 0, library


def _drawn(signature: Signature) -> list[np.ndarray]:
    import numpy as np

    rng = np.random.default_rng(_SEED)
    found = []
    for each in signature.arguments:
        if each.size is not None and each.type in _FLOATS:
            found.append(rng.standard_normal(each.size).astype(TYPES[each.type]))
        elif each.size is not None:
            found.append(rng.integers(0, _DRAWN_INTEGERS, each.size).astype(TYPES[each.type]))
    return found
