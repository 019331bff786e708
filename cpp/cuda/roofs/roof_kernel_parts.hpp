#pragma once

#include "cuda/roofs/roof_kernel.hpp"

// What definitions of kernels for several units share.
namespace fairlap::cuda {

constexpr Filling kFp32{.mask = 0x807fffff, .bits = 0x3f000000};
constexpr Filling kFp64{.mask = 0x800fffff, .bits = 0x3fe00000};  // the upper half; any bits may be the lower
constexpr Filling kFp16{.mask = 0x83ff83ff, .bits = 0x38003800};
constexpr Filling kBf16{.mask = 0x807f807f, .bits = 0x3f003f00};
constexpr Filling kFp8{.mask = 0x87878787, .bits = 0x30303030};  // e4m3: four bits of exponent
constexpr Filling kFp4{.mask = 0x99999999, .bits = 0x22222222};  // e2m1: from 1 to 1.5, of which it has two
constexpr Filling kInteger{.mask = 0xffffffff, .bits = 0};

constexpr std::uint32_t kScalesOfOne = 0x38383838;  // four in ue4m3

constexpr double operations_of(int m, int n, int k) { return 2.0 * m * n * k; }

// Where an instruction finds the rows of its matrices in shared memory, as a descriptor has it: bytes from
// one group of eight rows to the next, and either bytes between the halves of a row or a pattern of banks.
constexpr std::uint64_t layout(std::uint64_t between_halves, std::uint64_t between_groups,
                               std::uint64_t pattern) {
  return (between_halves >> 4U) << 16U | (between_groups >> 4U) << 32U | pattern << 62U;
}
constexpr std::uint64_t kPlainTiles = layout(128, 256, 0);
constexpr std::uint64_t kSwizzledTiles = layout(16, 1024, 1);

// Of devices whose matrix units keep their sums in tensor memory.
std::vector<RoofKernel> tensor_memory_kernels();

}  // namespace fairlap::cuda
