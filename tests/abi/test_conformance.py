"""Every constant, type, record and function that fairlap declares for NVIDIA's libraries matches NVIDIA's headers.

The headers come from packages (the dependency group `abi`) or an installed toolkit. Without them the tests fail: the
comparison is the only proof that the engine calls the real libraries correctly.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from . import releases
from .comparison import Result, compare
from .declarations import Declaration, NotUnderstood, read_declarations
from .nvidia_headers import LIBRARIES, Headers, find_headers

CPP = Path(__file__).parents[2] / "cpp"
OURS = {
    "cuda": CPP / "cuda/driver/driver_abi.hpp",
    "cupti": CPP / "cuda/activity/cupti_abi.hpp",
    "nvml": CPP / "telemetry/nvml/nvml_abi.hpp",
}
HEADERS = find_headers()

pytestmark = pytest.mark.sanitized


def _compare(library: str, headers: Headers, folder: Path, ours: Path | None = None) -> tuple[Result, set[str]]:
    """Return the comparison, and the names that these headers lack."""
    path = ours or OURS[library]
    declarations = read_declarations(path)
    absent = _absent(declarations, library, headers)
    present = [one for one in declarations if one.name not in absent]
    return compare(path, present, library, headers, releases.of_the_fake(), folder), absent


def _absent(declarations: Iterable[Declaration], library: str, headers: Headers) -> set[str]:
    return {one.name for one in declarations if not _is_declared(one, library, headers)}


def _is_declared(one: Declaration, library: str, headers: Headers) -> bool:
    if one.since > headers.cuda_version:
        return False
    names = headers.names_in("cu" if library != "nvml" else library)
    if one.kind == "function" and library == "cuda":
        base = re.sub(r"_v\d+$", "", one.theirs)
        return f"PFN_{base}_v{releases.of_the_fake()[one.theirs]}" in names
    return headers.newest(library, one.theirs) in names


def test_every_library_has_headers_of_two_generations() -> None:
    for library in LIBRARIES:
        generations = {headers.cuda_version // 1000 for headers in HEADERS if headers.has(library)}
        assert len(generations) >= 2, f"NVIDIA's {library} headers are missing: pip install --group abi"


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_declaration_equals_that_of_the_newest_headers(library: str, tmp_path: Path) -> None:
    newest = next(headers for headers in HEADERS if headers.has(library))
    result, absent = _compare(library, newest, tmp_path)
    assert absent == set()
    assert result.compared == {one.name for one in read_declarations(OURS[library])}
    assert result.differences == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "headers"),
    [
        pytest.param(library, headers, id=f"{library}-{headers.cuda_version}")
        for headers in HEADERS[1:]
        for library in LIBRARIES
        if headers.has(library)
    ],
)
def test_declarations_equal_those_of_older_headers(library: str, headers: Headers, tmp_path: Path) -> None:
    result, absent = _compare(library, headers, tmp_path)
    assert result.differences == ()
    # An older driver may lack only what the engine knows to be newer.
    for name in absent & {one.name for one in read_declarations(OURS["cuda"]) if one.kind == "function"}:
        assert releases.of_the_fake()[name.removeprefix("PFN_")] > headers.cuda_version


def test_the_engine_and_the_fake_agree_on_the_release_of_every_function() -> None:
    fake = releases.of_the_fake()
    assert {name: fake.get(name) for name in releases.of_the_engine()} == releases.of_the_engine()


def test_every_driver_function_declared_is_in_the_engines_table() -> None:
    declared = {one.theirs for one in read_declarations(OURS["cuda"]) if one.kind == "function"}
    assert declared - set(releases.of_the_engine()) == {"cuGetProcAddress", "cuGetProcAddress_v2"}


@pytest.mark.parametrize("headers", HEADERS, ids=lambda headers: f"CUDA-{headers.cuda_version}")
def test_the_fake_knows_every_form_of_a_function(headers: Headers) -> None:
    typedefs = headers.file("cudaTypedefs.h")
    assert typedefs is not None
    real = {
        (base, int(release))
        for base, release in re.findall(r"PFN_(cu\w+?)_v(\d+)\)", typedefs.read_text(errors="replace"))
    }
    ours = releases.forms_of_the_fake()
    bases = {base for base, _ in ours}
    known = {(base, release) for base, release in ours if release <= headers.cuda_version}
    assert known == {(base, release) for base, release in real if base in bases}


WRONG: dict[str, list[tuple[str, str, str]]] = {  # the correct text, a wrong one, the difference to find
    "cuda": [
        ("CUDA_ERROR_NOT_READY = 600", "CUDA_ERROR_NOT_READY = 601", "CUDA_ERROR_NOT_READY: value"),
        ("STREAM_PER_THREAD = 2", "STREAM_PER_THREAD = 3", "STREAM_PER_THREAD: value"),
        ("(*)(float*, CUevent, CUevent)", "(*)(double*, CUevent, CUevent)", "PFN_cuEventElapsedTime: type"),
        ("(*)(CUevent*, unsigned int)", "(*)(CUevent*, unsigned long)", "PFN_cuEventCreate: type"),
        ("using CUdeviceptr = unsigned long long", "using CUdeviceptr = unsigned int", "CUdeviceptr: type"),
    ],
    "cupti": [
        ("  std::uint64_t completed;\n", "", "ActivityKernelPrefix: offset of deviceId"),
        ("std::uint32_t correlationId;", "std::uint64_t correlationId;", "size of correlationId"),
    ],
    "nvml": [
        ("POWER_INSTANT = 186", "POWER_INSTANT = 185", "NVML_FI_DEV_POWER_INSTANT: value"),
        ("  long long latencyUsec;\n", "", "nvmlFieldValue_t: size"),
        ("  unsigned int uiVal;\n", "  unsigned short uiVal;\n", "nvmlValue_t: size of uiVal"),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_kind_of_wrong_declaration_is_found(library: str, tmp_path: Path) -> None:
    text = OURS[library].read_text()
    for right, wrong, _ in WRONG[library]:
        assert right in text
        text = text.replace(right, wrong)
    changed = tmp_path / "changed.hpp"
    changed.write_text(text)
    newest = next(headers for headers in HEADERS if headers.has(library))
    differences = "\n".join(_compare(library, newest, tmp_path, changed)[0].differences)
    assert [found for _, _, found in WRONG[library] if found not in differences] == []


@pytest.mark.parametrize(
    "line", ["int stray;", "enum Loose { A, B };", "using PFN_no_end = int (*)(int)", "#define X 1"]
)
def test_a_declaration_in_an_unknown_form_is_an_error(line: str, tmp_path: Path) -> None:
    changed = tmp_path / "changed.hpp"
    changed.write_text(
        OURS["cuda"]
        .read_text()
        .replace("constexpr CUresult CUDA_SUCCESS", f"{line}\nconstexpr CUresult CUDA_SUCCESS", 1)
    )
    with pytest.raises(NotUnderstood):
        read_declarations(changed)


def test_an_invented_name_is_found(tmp_path: Path) -> None:
    changed = tmp_path / "changed.hpp"
    changed.write_text(OURS["cuda"].read_text().replace("CUDA_ERROR_NOT_READY", "CUDA_ERROR_NOT_HEADY"))
    newest = next(headers for headers in HEADERS if headers.has("cuda"))
    assert _absent(read_declarations(changed), "cuda", newest) == {"CUDA_ERROR_NOT_HEADY"}
