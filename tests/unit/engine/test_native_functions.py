"""C functions are timed without Python, from an address, a ctypes function or a capsule."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import fairlap
import pytest
from fairlap.engine import NativeFunction, time_calls


def capsule(address: int, name: bytes | None) -> object:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(address, name, None)


def counting_function() -> tuple[Callable[[int], None], list[int]]:
    """Make a native entry point that counts how often, and with which argument, it is called."""
    seen: list[int] = []

    def count(context: int | None) -> None:
        seen.append(context or 0)

    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(count), seen


def address_of(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def test_a_ctypes_function_is_called_natively_with_its_pointer() -> None:
    count, seen = counting_function()
    result = time_calls(count, args=(1234,), samples=5, warmup=0)
    assert seen == [1234] * 5
    assert result.settings["call"] == "native"


def test_an_address_is_called_with_its_context() -> None:
    count, seen = counting_function()
    time_calls(NativeFunction(address_of(count), context=77, owner=count), samples=3, warmup=0)
    assert seen == [77] * 3


def test_a_ctypes_object_is_handed_over_by_its_address() -> None:
    count, seen = counting_function()
    value = ctypes.c_int(5)
    time_calls(count, args=(value,), samples=1, warmup=0)
    time_calls(count, args=(ctypes.pointer(value),), samples=1, warmup=0)
    time_calls(count, args=(ctypes.c_void_p(99),), samples=1, warmup=0)
    assert seen == [ctypes.addressof(value)] * 2 + [99]


@pytest.mark.parametrize("name", [b"fairlap.call", b"void (void *)", b"void ()"])
def test_a_capsule_with_a_fitting_signature_is_called(name: bytes) -> None:
    count, seen = counting_function()
    time_calls(capsule(address_of(count), name), samples=4, warmup=0)
    assert len(seen) == 4


@pytest.mark.parametrize("name", [b"double (double)", None])
def test_a_capsule_of_another_signature_is_refused_by_name(name: bytes | None) -> None:
    count, _ = counting_function()
    with pytest.raises(fairlap.InvalidRequest, match=r"fairlap\.call"):
        time_calls(capsule(address_of(count), name), samples=1)


def test_a_native_completion_is_called_once_a_sample() -> None:
    count, seen = counting_function()
    wait, waited = counting_function()
    result = time_calls(count, done=wait, samples=6, warmup=0, calls_per_sample=2)
    assert (len(seen), len(waited)) == (12, 6)
    assert (result.host_issue_ns <= result.wall_ns).all()
