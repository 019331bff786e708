"""The instructions of a processor are named from what its kernel shows, and by the roofs."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.machine.hardware import roofs
from fairlap.machine.hardware.instructions import instructions_by_type, instructions_in, measured_name, not_measured
from fairlap.machine.hardware.processor import flags, processor_facts

from .machines import COMMON, built
from .processors_described import DESCRIBED

OF_ALL_X86 = ["AVX2", "FMA", "F16C"]
NAMED = {
    "Sapphire Rapids": ["AMX BF16", "AMX INT8", "AVX-512", "AVX-512 FP16", "AVX-512 BF16", "AVX-512 VNNI", "AVX-VNNI",
                        *OF_ALL_X86],
    "Ice Lake": ["AVX-512", "AVX-512 VNNI", *OF_ALL_X86],
    "Zen 4": ["AVX-512", "AVX-512 BF16", "AVX-512 VNNI", *OF_ALL_X86],
    "Neoverse V2": ["SVE I8MM", "SVE BF16", "SVE2", "SVE", "NEON I8MM", "NEON BF16", "NEON dot product", "NEON FP16",
                    "NEON"],
    "Neoverse V1": ["SVE I8MM", "SVE BF16", "SVE", "NEON I8MM", "NEON BF16", "NEON dot product", "NEON FP16", "NEON"],
    "Neoverse N1": ["NEON dot product", "NEON FP16", "NEON"],
    "Cortex-A72": ["NEON"],
}  # fmt: skip
OF_INT8 = {
    "Sapphire Rapids": ("AMX INT8", "AVX-512 VNNI", "AVX-VNNI"),
    "Ice Lake": ("AVX-512 VNNI",),
    "Zen 4": ("AVX-512 VNNI",),
    "Neoverse V2": ("SVE I8MM", "NEON I8MM", "NEON dot product"),
    "Neoverse V1": ("SVE I8MM", "NEON I8MM", "NEON dot product"),
    "Neoverse N1": ("NEON dot product",),
}


@pytest.mark.parametrize("processor", DESCRIBED)
def test_they_are_a_fact_of_the_machine(tmp_path: Path, processor: str) -> None:
    root = built(tmp_path, COMMON, {"proc/cpuinfo": DESCRIBED[processor]})
    assert processor_facts(root)["instructions"].split(", ") == NAMED[processor]
    by_type = instructions_by_type(flags(root))
    assert by_type.get("int8", ()) == OF_INT8.get(processor, ())
    assert by_type["fp32"] == tuple(
        name for name in NAMED[processor] if name in ("AVX-512", "AVX2", "FMA", "SVE", "NEON")
    )


def test_a_flag_that_is_another_thing_on_x86_names_no_instructions() -> None:
    flags_of_zen = DESCRIBED["Zen 4"].split()
    assert instructions_in([*flags_of_zen, "sme"]) == NAMED["Zen 4"]  # where it encrypts memory
    assert instructions_in([*DESCRIBED["Neoverse V2"].split(), "sme"])[0] == "SME"


def test_a_machine_that_describes_no_flags_has_no_such_fact(tmp_path: Path) -> None:
    assert processor_facts(built(tmp_path, COMMON))["instructions"] == ""


def test_what_a_roof_was_measured_with_has_the_same_names() -> None:
    has = instructions_by_type(DESCRIBED["Sapphire Rapids"].split())
    assert measured_name("amx_int8") == has["int8"][0]
    assert not_measured("amx_int8", has["int8"]) == ["AVX-512 VNNI", "AVX-VNNI"]
    assert not_measured("avx2 and fma", has["fp32"]) == ["AVX-512"]
    assert measured_name("avx512f, widened to fp32") == "AVX-512, widened to fp32"
    assert measured_name("mma.m16n8k16") == "mma.m16n8k16"  # of a GPU
    assert measured_name("") == ""


def test_a_type_that_is_not_measured_names_what_the_processor_has_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofs, "instructions_for", lambda name: ["neon"] if name in ("fp32", "fp64") else [])
    absent = roofs._absent_number_types(frozenset(DESCRIBED["Neoverse N1"].split()))
    assert "NEON dot product" in absent["int8"]
    assert "NEON FP16" in absent["fp16"]
    assert absent["bf16"]


def test_roofs_of_this_machine_are_measured_with_what_it_has() -> None:
    from fairlap.engine.roofs import instructions_for
    from fairlap.machine.root import THIS_MACHINE

    has = instructions_by_type(flags(THIS_MACHINE))
    for number_type in ("int8", "bf16", "fp16"):
        for each in instructions_for(number_type):
            assert measured_name(each) in has[number_type]
