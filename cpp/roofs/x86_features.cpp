#include "roofs/x86_features.hpp"

#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

// AMX's registers are large, so Linux gives them only to processes that ask
// (Documentation/arch/x86/xstate.rst). It refuses where a thread's stack for signals is too small for them.
bool system_gives_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  static const bool given = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return given;
#else
  return false;
#endif
}

constexpr bool has_bit(unsigned word, unsigned bit) { return (word >> bit & 1U) != 0; }

}  // namespace

bool has_avx2_and_fma() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }

bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }

// Not every compiler knows these by name (Intel SDM vol. 2, CPUID leaf 7).
bool has_avx512_bf16() { return has_avx512() && has_bit(extended_features(1).eax, 5); }
bool has_avx512_fp16() { return has_avx512() && has_bit(extended_features(0).edx, 23); }
bool has_avx512_vnni() { return has_avx512() && has_bit(extended_features(0).ecx, 11); }
bool has_amx_bf16() { return has_bit(extended_features(0).edx, 22) && system_gives_tiles(); }
bool has_amx_int8() { return has_bit(extended_features(0).edx, 25) && system_gives_tiles(); }
bool has_avx_vnni() { return has_avx2_and_fma() && has_bit(extended_features(1).eax, 4); }

}  // namespace fairlap::roofs
