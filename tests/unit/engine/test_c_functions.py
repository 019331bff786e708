"""C functions get their arguments in the right registers, in turns of any kinds, and are timed without Python."""

from __future__ import annotations

import ctypes
import itertools
import json
import math
import shutil
import subprocess
from pathlib import Path

import fairlap
import numpy as np
import pytest
from command_line import invoke, output
from fairlap.engine.c_functions import CFunction, is_of_library, loaded, signature_of
from fairlap.errors import FairlapError, InvalidRequest
from hypothesis import given, settings
from hypothesis import strategies as st

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = [pytest.mark.sanitized, pytest.mark.skipif(COMPILER is None, reason="no C compiler")]

# Each writes what it was given, as doubles, to the array at the end.
TYPES = {"i8": "int8_t", "u8": "uint8_t", "i16": "int16_t", "i32": "int32_t", "u32": "uint32_t", "i64": "int64_t",
         "f32": "float", "f64": "double"}  # fmt: skip
SHAPES = [
    ("i32", "f64", "f32"),
    ("f32", "f32", "i8", "f64", "u8", "i16", "u32", "i64"),
    ("f64",) * 8,
    ("i64",) * 5,
    ("f32", "i32") * 5,
    (),
]
SOURCE = """
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
double dot(const double *a, const double *b, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}
double dot_backwards(const double *a, const double *b, int n) {
  double s = 0;
  for (int i = n; i--;) s += a[i] * b[i];
  return s;
}
double dot_but_one(const double *a, const double *b, int n) { return dot(a, b, n - 1); }
float narrow(float x) { return x + 1; }
int32_t negative(int32_t x) { return -x; }
void scaled(float *a, int n) { for (int i = 0; i < n; i++) a[i] = 2 * a[i]; }
void scaled_wrongly(float *a, int n) { for (int i = 0; i < n; i++) a[i] = 2 * a[i]; a[n / 2] += 1; }
void crash(void) { *(volatile int *)0 = 1; }
void leave(void) { exit(3); }
double by_hand_ns(const double *a, const double *b, int n, int calls) {
  struct timespec began, ended; volatile double sink;
  clock_gettime(CLOCK_MONOTONIC_RAW, &began);
  for (int i = 0; i < calls; i++) sink = dot(a, b, n);
  clock_gettime(CLOCK_MONOTONIC_RAW, &ended);
  return ((ended.tv_sec - began.tv_sec) * 1e9 + ended.tv_nsec - began.tv_nsec) / calls;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("c")
    functions = [SOURCE]
    for number, kinds in enumerate(SHAPES):
        taken = "".join(f"{TYPES[kind]} a{place}, " for place, kind in enumerate(kinds))
        written = " ".join(f"seen[{place}] = a{place};" for place in range(len(kinds)))
        functions.append(f"void seen_{number}({taken}double *seen) {{ {written} seen[{len(kinds)}] = 77; }}")
    (folder / "lib.c").write_text("\n".join(functions))
    assert COMPILER
    command = [COMPILER, "-O1", "-fno-inline", "-shared", "-fPIC", "-o", "lib.so", "lib.c", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "lib.so"


def called(function: CFunction) -> CFunction:
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function.native.address)(function.native.context)
    return function


def value_of(kind: str) -> st.SearchStrategy[float]:
    if kind in ("f32", "f64"):
        return st.floats(width=32, allow_nan=False)
    limits = np.iinfo({"i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32", "u32": "uint32"}.get(kind, "int32"))
    return st.integers(int(limits.min), int(limits.max))


@given(st.data(), st.integers(0, len(SHAPES) - 1))
@settings(max_examples=60, deadline=None)
def test_every_argument_arrives_as_it_was_given(library: Path, data: st.DataObject, number: int) -> None:
    kinds = SHAPES[number]
    values = [data.draw(value_of(kind)) for kind in kinds]
    text = ",".join([*(f"{kind}:{value!r}" for kind, value in zip(kinds, values, strict=True)), "f64[20]"])
    [seen] = called(loaded(f"{library}:seen_{number}", signature_of(text))).arrays
    assert seen[: len(kinds)].tolist() == values
    assert seen[len(kinds)] == 77


def test_arrays_are_handed_over_and_what_is_returned_comes_back(library: Path) -> None:
    found = called(loaded(f"{library}:dot", signature_of("f64[1000],f64[1000],i32:1000->f64")))
    first, second = found.arrays
    assert found.returned == pytest.approx(float(first @ second), rel=1e-12)
    assert first.tolist() != second.tolist()
    assert called(loaded(f"{library}:narrow", signature_of("f32:0.5->f32"))).returned == 1.5
    assert called(loaded(f"{library}:negative", signature_of("i32:-7->i32"))).returned == 7
    assert called(loaded(f"{library}:negative", signature_of("i32:7->i32"))).returned == -7
    assert called(loaded(f"{library}:dot", signature_of("f64[2],f64[2],i32:2"))).returned is None
    assert called(loaded("libm.so.6:sin", signature_of("f64:0.5->f64"))).returned == math.sin(0.5)


def test_it_is_timed_natively(library: Path) -> None:
    function = fairlap.c_function(f"{library}:dot", "f64[100],f64[100],i32:100->f64")
    assert fairlap.measure(function, samples=20, warmup=0).settings["call"] == "native"


@pytest.mark.slow
def test_a_loop_in_c_takes_as_long(library: Path) -> None:
    """Both take turns in this process, so that a slow moment of the machine meets both."""
    length, calls = 1000, 10
    by_hand = ctypes.CDLL(str(library)).by_hand_ns
    by_hand.restype = ctypes.c_double
    arrays = [np.random.default_rng(place).standard_normal(length) for place in range(2)]
    pointers = [ctypes.c_void_p(each.ctypes.data) for each in arrays]
    function = fairlap.c_function(f"{library}:dot", f"f64[{length}],f64[{length}],i32:{length}->f64")
    ratios = []
    for _ in range(15):
        loops_ns = [by_hand(*pointers, length, calls) for _ in range(1000)]
        ratios.append(fairlap.measure(function, seconds=0.02).median_ns / float(np.median(loops_ns)))
    assert 0.9 < float(np.median(ratios)) < 1.1


def test_functions_that_compute_the_same_race(library: Path) -> None:
    options = ("--args", "f64[1000],f64[1000],i32:1000->f64", "--blocks", "2", "--json")
    document = json.loads(output("time", f"{library}:dot", f"{library}:dot_backwards", *options))
    assert document["answers"]["compared"] == "each other"
    assert len(document["rows"]) == 2


@pytest.mark.slow_but("scaled_wrongly")
@pytest.mark.parametrize(
    ("other", "first", "arguments"),
    [
        ("dot_but_one", "dot", "f64[1000],f64[1000],i32:1000->f64"),
        ("scaled_wrongly", "scaled", "f32[1000],i32:1000"),
    ],
)
def test_a_function_that_computes_something_else_is_named(
    library: Path, other: str, first: str, arguments: str
) -> None:
    names = (f"{library}:{first}", f"{library}:{other}")
    refused = invoke("time", *names, "--args", arguments)
    assert isinstance(refused.exception, FairlapError)
    assert refused.exception.code == "E_OUTPUT"
    assert other in str(refused.exception)
    assert invoke("time", *names, "--args", arguments, "--any-answers", "--blocks", "1").exit_code == 0


@pytest.mark.parametrize("name", ["crash", "leave"])
def test_a_function_that_ends_its_process_does_not_end_ours(library: Path, name: str) -> None:
    refused = invoke("time", f"{library}:{name}")
    assert isinstance(refused.exception, InvalidRequest)
    assert refused.exception.code == "E_CRASH"


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("dott", "", "dott"),
        ("dot", "f64", "f64"),
        ("dot", "f65:1", "f65"),
        ("dot", "i8:128", "128"),
        ("dot", "u8:-1", "-1"),
        ("dot", "i32:1.5", "1.5"),
        ("dot", "f64:x", "x"),
        ("dot", "f64[0]", "f64"),
        ("dot", "f64[99999999999]", "f64"),
        ("dot", "i32:1->f16", "f16"),
        ("dot", ",".join(["f64:1"] * 9), "8"),
        ("dot", ",".join(["i64:1"] * 9), "whole"),
    ],
)
def test_what_cannot_be_called_is_refused_in_a_line(library: Path, name: str, arguments: str, named: str) -> None:
    refused = invoke("time", f"{library}:{name}", *(["--args", arguments] if arguments else []))
    assert isinstance(refused.exception, InvalidRequest)
    assert named in str(refused.exception)
    assert len(str(refused.exception).splitlines()) <= 2


@pytest.mark.parametrize(
    "options", [("--inputs", "m:f"), ("--reference", "m:f"), ("--device", "cuda"), ("--untrusted",), ("--grid", "2")]
)
def test_options_of_others_are_refused(library: Path, options: tuple[str, ...]) -> None:
    assert isinstance(invoke("time", f"{library}:leave", *options).exception, InvalidRequest)


def test_a_missing_library_and_one_that_is_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    for path in (tmp_path / "none.so", tmp_path / "text.so"):
        assert isinstance(invoke("time", f"{path}:f").exception, InvalidRequest)
    assert isinstance(invoke("time", f"{tmp_path / 'text.so'}:f", "time:time_ns").exception, InvalidRequest)


@pytest.mark.parametrize("name", [3, "math:sin", "libm.so.6"])
def test_what_names_no_function_of_a_library_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest):
        fairlap.c_function(name)


def test_arrays_without_room_are_refused(library: Path) -> None:
    arrays = ",".join(["f64[8589934592]"] * 4)
    assert isinstance(invoke("time", f"{library}:dot", "--args", arrays).exception, InvalidRequest)


def test_names_of_libraries_are_told_from_modules() -> None:
    libraries = ["libm.so.6:sin", "./a.so:f", "/x/libfoo.1.dylib:f"]
    others = ["math:sin", "a.so", "my.so.module:f", "kernel.ptx:f", ":f", "so:f"]
    assert [is_of_library(each) for each in itertools.chain(libraries, others)] == [True] * 3 + [False] * 6


@pytest.mark.parametrize(("arguments", "is_warned"), [("", True), ("f64:0.5->f64", False), ("void", False)])
def test_a_function_that_is_called_without_arguments_says_so(arguments: str, is_warned: bool) -> None:
    found = fairlap.measure(fairlap.c_function("libm.so.6:sin", arguments), samples=10, warmup=1)
    assert ("W_NO_ARGUMENTS" in [notice.code for notice in found.warnings]) == is_warned
    given = ("--args", arguments) if arguments else ()
    one = json.loads(output("time", "libm.so.6:sin", *given, "--seconds", "0.01", "--json"))
    assert ("W_NO_ARGUMENTS" in [each["code"] for each in one["warnings"]]) == is_warned


def test_each_row_of_functions_without_arguments_says_so() -> None:
    names = ("libm.so.6:sin", "libm.so.6:cos")
    document = json.loads(output("time", *names, "--any-answers", "--blocks", "2", "--json"))
    assert all("W_NO_ARGUMENTS" in [each["code"] for each in row["warnings"]] for row in document["rows"])


@pytest.mark.parametrize(
    ("arguments", "shown"), [("f64:0.5", False), ("void", False), ("f64:0.5->f64", True), ("f32[8],i32:8", True)]
)
def test_answers_show_in_arrays_and_in_what_is_returned_alone(arguments: str, shown: bool) -> None:
    assert signature_of(arguments).shows_answers is shown
