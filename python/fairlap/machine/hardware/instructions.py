"""The instructions that a processor has for vectors and for products of small types, by the names they are known by.

The kernel's flags say which it has. On Arm a flag may have the name of something else on x86, such as ``sme``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

_FLOATS = ("fp32", "fp64")
_ON_ARM = "asimd"  # which every 64-bit Arm processor has


@dataclass(frozen=True)
class _Instructions:
    flag: str
    name: str
    number_types: tuple[str, ...] = ()  # that they multiply and add


# Of one type the widest ones first.
_X86 = (
    _Instructions("amx_fp16", "AMX FP16", ("fp16",)),
    _Instructions("amx_bf16", "AMX BF16", ("bf16",)),
    _Instructions("amx_int8", "AMX INT8", ("int8",)),
    _Instructions("avx512f", "AVX-512", _FLOATS),
    _Instructions("avx512_fp16", "AVX-512 FP16", ("fp16",)),
    _Instructions("avx512_bf16", "AVX-512 BF16", ("bf16",)),
    _Instructions("avx512_vnni", "AVX-512 VNNI", ("int8",)),
    _Instructions("avx_vnni", "AVX-VNNI", ("int8",)),
    _Instructions("avx2", "AVX2", _FLOATS),
    _Instructions("fma", "FMA", _FLOATS),
    _Instructions("f16c", "F16C"),  # which converts fp16
)
_ARM = (
    _Instructions("sme", "SME", _FLOATS),
    _Instructions("svei8mm", "SVE I8MM", ("int8",)),
    _Instructions("svebf16", "SVE BF16", ("bf16",)),
    _Instructions("sve2", "SVE2"),
    _Instructions("sve", "SVE", (*_FLOATS, "fp16")),
    _Instructions("i8mm", "NEON I8MM", ("int8",)),
    _Instructions("bf16", "NEON BF16", ("bf16",)),
    _Instructions("asimddp", "NEON dot product", ("int8",)),
    _Instructions("asimdhp", "NEON FP16", ("fp16",)),
    _Instructions("asimd", "NEON", _FLOATS),
)
_MEASURED: Mapping[str, tuple[str, ...]] = {
    **{each.flag: (each.name,) for each in _X86},
    "avx2 and fma": ("AVX2", "FMA"),
    "sse2": ("SSE2",),
    "neon": ("NEON",),
}
"""By the names that the engine's kernels have."""


def instructions_in(flags: Collection[str]) -> list[str]:
    """Name those that a processor with these flags of the kernel has."""
    return [each.name for each in _having(flags)]


def instructions_by_type(flags: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Name them by the number types that they multiply and add."""
    found: dict[str, list[str]] = {}
    for each in _having(flags):
        for number_type in each.number_types:
            found.setdefault(number_type, []).append(each.name)
    return {number_type: tuple(names) for number_type, names in found.items()}


def measured_name(instructions: str) -> str:
    """Name what a roof was measured with: ``avx2 and fma`` is AVX2 with FMA. What has no other name stays."""
    own, comma, how = instructions.partition(",")
    return " with ".join(_MEASURED.get(own, (own,))) + comma + how


def not_measured(instructions: str, has: Sequence[str]) -> list[str]:
    """Of those that a processor has for a type, name the ones that its roof was not measured with."""
    used = _MEASURED.get(instructions.partition(",")[0], ())
    return [name for name in has if name not in used]


def _having(flags: Collection[str]) -> list[_Instructions]:
    return [each for each in (_ARM if _ON_ARM in flags else _X86) if each.flag in flags]
