"""The fake driver has the real one's functions: their types, and nothing that escapes its bookkeeping."""

import re
from pathlib import Path

import pytest

from . import releases
from .comparison import compare
from .declarations import Declaration
from .nvidia_headers import find_headers

pytestmark = pytest.mark.sanitized

FAKE = Path(__file__).parents[2] / "cpp/fakes/cuda"


def test_every_function_of_the_fake_has_the_real_ones_type(tmp_path: Path) -> None:
    names = sorted(releases.of_the_fake())
    header = tmp_path / "fake.hpp"
    # The fake's functions and NVIDIA's share their names, so the fake's are declared under others here.
    header.write_text(
        "\n".join(
            [
                *(f"#define {name} fake_{name}" for name in names),
                '#include "fakes/cuda/exports.hpp"',
                *(f"#undef {name}" for name in names),
                "namespace fake {",
                *(f"using PFN_{name} = decltype(&fairlap::cuda::fake_{name});" for name in names),
                "}",
            ]
        )
    )
    declarations = [Declaration("function", "fake", f"PFN_{name}", name) for name in names]
    result = compare(header, declarations, "cuda", find_headers()[0], releases.of_the_fake(), tmp_path)
    assert result.compared == {one.name for one in declarations}
    assert result.differences == ()


@pytest.mark.parametrize("fake", ["cuda", "cupti", "nvml"])
def test_every_function_of_a_fake_is_counted_and_can_be_made_to_fail_by_name(fake: str) -> None:
    folder = FAKE.parent / fake
    declared = set(
        re.findall(r"^(?:\w+Result|CUresult|nvmlReturn_t) (\w+)\(", (folder / "exports.hpp").read_text(), re.M)
    )
    text = "".join(path.read_text() for path in sorted(folder.glob("*.cpp")))
    entered = set(re.findall(r'\b(?:entry|give_text|on_board)\(\s*"(\w+)"', text))
    assert declared == entered


def test_every_exported_driver_function_can_be_looked_up() -> None:
    declared = set(re.findall(r"^CUresult (\w+)\(", (FAKE / "exports.hpp").read_text(), re.MULTILINE))
    assert declared == set(releases.of_the_fake())
