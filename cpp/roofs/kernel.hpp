#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fairlap::roofs {

// Independent multiply-adds in registers, enough of them to fill the processor's pipes.
struct ArithmeticKernel {
  std::string_view number_type;
  std::string_view instructions;
  double operations_per_round = 0.0;  // a multiply-add counts as two
  bool (*available)() = nullptr;
  void (*run)(std::uint64_t rounds) = nullptr;
};

// a = b + s * c over doubles. The number of elements is a multiple of kTriadStep, the arrays are aligned to a
// cache line, and the kernel goes over them `passes` times.
struct TriadKernel {
  std::string_view instructions;
  bool bypasses_caches = false;  // by non-temporal stores, as no line has to be read before it is written
  bool (*available)() = nullptr;
  void (*run)(double* a, const double* b, const double* c, std::size_t elements,
              std::uint64_t passes) = nullptr;
};

inline constexpr std::size_t kCacheLineBytes = 64;
inline constexpr std::size_t kTriadStep = 64;  // elements
inline constexpr double kTriadBytes = 24.0;    // an element costs two reads and a write, as STREAM counts

// All that were compiled for this architecture; call only those that are available on this processor.
std::span<const ArithmeticKernel> arithmetic_kernels();
std::span<const TriadKernel> triad_kernels();

}  // namespace fairlap::roofs
