#pragma once

namespace fairlap::roofs {

// Whether the processor has the instructions and the system saves their registers.
bool has_avx2_and_fma();
bool has_avx512();
bool has_avx512_bf16();
bool has_avx512_fp16();
bool has_avx512_vnni();
bool has_avx_vnni();

// These ask the system for the registers, which it gives to a process that asks; the answer is kept.
bool has_amx_bf16();
bool has_amx_int8();

}  // namespace fairlap::roofs
