"""Write, compile and run the C++ program that compares our declarations with NVIDIA's."""

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .declarations import Declaration
from .nvidia_headers import Headers

_SHAPES = Path(__file__).with_name("shapes.hpp")


@dataclass(frozen=True)
class Result:
    compared: frozenset[str]  # names of our declarations
    differences: tuple[str, ...]


def compare(
    ours: Path,
    declarations: Iterable[Declaration],
    library: str,
    headers: Headers,
    releases: dict[str, int],
    folder: Path,
) -> Result:
    """Compare all `declarations` of the header `ours`; `headers` must have each of them."""
    source = folder / "comparison.cpp"
    source.write_text(_program(ours, list(declarations), library, headers, releases))
    include = Path(__file__).parents[2] / "cpp"
    command = ["c++", "-std=c++20", "-Wno-deprecated-declarations", "-Wno-invalid-offsetof", f"-I{include}"]
    command += [f"-isystem{path}" for path in headers.folders]
    command += [argument for path in headers.extra_folders for argument in ("-idirafter", str(path))]
    program = folder / "comparison"
    built = subprocess.run([*command, str(source), "-o", str(program)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, "\n".join(built.stderr.splitlines()[:20])
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    return Result(
        compared=frozenset(row[0] for row in rows),
        differences=tuple(f"{row[0]}: {row[1]}: ours {row[2]}, theirs {row[3]}" for row in rows if row[2] != row[3]),
    )


def _program(
    ours: Path, declarations: list[Declaration], library: str, headers: Headers, releases: dict[str, int]
) -> str:
    captured = [
        f"constexpr auto captured_{one.name} = {one.ours};"
        if one.kind == "constant"
        else f"using captured_{one.name} = {one.ours};"
        for one in declarations
    ]
    lines = [line for one in declarations for line in _lines(one, library, headers, releases)]
    includes = {"cuda": ["cuda.h", "cudaTypedefs.h"], "cupti": ["cuda.h", "cupti.h"], "nvml": ["nvml.h"]}[library]
    return "\n".join(
        [
            f'#include "{ours}"',
            f'#include "{_SHAPES}"',
            "// Captured before NVIDIA's headers are included, because some of the names are macros there.",
            *captured,
            *(f"#include <{name}>" for name in includes),
            "int main() {",
            *(f"  {line}" for line in lines),
            "}",
            "",
        ]
    )


def _lines(one: Declaration, library: str, headers: Headers, releases: dict[str, int]) -> list[str]:
    ours = f"captured_{one.name}"
    if one.kind == "constant":
        return [f'report("{one.name}", "value", number({ours}), number({one.theirs}));']
    if one.kind == "type":
        return [f'report_type<{ours}, ::{one.theirs}>("{one.name}");']
    if one.kind == "function":
        return [f'report_type<{ours}, {_function_type(one, library, releases)}>("{one.name}");']
    theirs = f"::{headers.newest(library, one.theirs)}"
    pairs = [] if one.is_prefix else [("size", f"sizeof({ours})", f"sizeof({theirs})")]
    for name in one.fields:
        if not name.startswith("unread"):
            pairs.append((f"offset of {name}", f"offsetof({ours}, {name})", f"offsetof({theirs}, {name})"))
            pairs.append((f"size of {name}", f"sizeof({ours}::{name})", f"sizeof({theirs}::{name})"))
    return [f'report("{one.name}", "{what}", {our_value}, {their_value});' for what, our_value, their_value in pairs]


def _function_type(one: Declaration, library: str, releases: dict[str, int]) -> str:
    if library != "cuda":
        return f"decltype(&::{one.theirs})"
    # cuda.h gives a plain name to the newest form of a function; the list of pointer types keeps all forms apart.
    base = re.sub(r"_v\d+$", "", one.theirs)
    return f"::PFN_{base}_v{releases[one.theirs]}"
