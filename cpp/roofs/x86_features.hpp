#pragma once

namespace fairlap::roofs {

// Whether the processor has the instructions and the system saves their registers.
bool has_avx2_and_fma();
bool has_avx512();
bool has_avx512_bf16();
bool has_avx512_vnni();
bool has_avx_vnni();

}  // namespace fairlap::roofs
