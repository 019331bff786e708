#include "roofs/x86_features.hpp"

#include <cpuid.h>

namespace fairlap::roofs {
namespace {

struct Leaf {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
};

Leaf extended_features(unsigned part) {
  Leaf leaf;
  if (__get_cpuid_count(7, part, &leaf.eax, &leaf.ebx, &leaf.ecx, &leaf.edx) == 0) return {};
  return leaf;
}

constexpr bool has_bit(unsigned word, unsigned bit) { return (word >> bit & 1U) != 0; }

}  // namespace

bool has_avx2_and_fma() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }

bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }

// Not every compiler knows these by name (Intel SDM vol. 2, CPUID leaf 7).
bool has_avx512_bf16() { return has_avx512() && has_bit(extended_features(1).eax, 5); }
bool has_avx512_vnni() { return has_avx512() && has_bit(extended_features(0).ecx, 11); }
bool has_avx_vnni() { return has_avx2_and_fma() && has_bit(extended_features(1).eax, 4); }

}  // namespace fairlap::roofs
