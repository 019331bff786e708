#pragma once

// Only for the files that hold kernels, with internal linkage for the same reason as accumulators.hpp.

#include <cstddef>
#include <cstdint>

#include "roofs/kernel.hpp"

namespace fairlap::roofs {
namespace {  // NOLINT(misc-anonymous-namespace-in-header): see above

template <int kVectorBytes>
struct OrdinaryStore {
  typedef double Vector __attribute__((vector_size(kVectorBytes), may_alias));
  static void store(double* to, Vector value) { *reinterpret_cast<Vector*>(to) = value; }
  static void finish() {}
};

template <int kVectorBytes, class Store>
void run_triad(double* a, const double* b, const double* c, std::size_t elements, std::uint64_t passes) {
  typedef double Vector __attribute__((vector_size(kVectorBytes), may_alias));
  constexpr std::size_t kLanes = kVectorBytes / sizeof(double);
  Vector scale = Vector{} + 0.4;  // NOLINT(misc-const-correctness): the next line may write it
  asm volatile("" : "+m"(scale));
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < elements; i += kTriadStep) {
#pragma GCC unroll 32
      for (std::size_t at = 0; at < kTriadStep; at += kLanes) {
        const Vector left = *reinterpret_cast<const Vector*>(b + i + at);
        const Vector right = *reinterpret_cast<const Vector*>(c + i + at);
        Store::store(a + i + at, left + scale * right);
      }
    }
    asm volatile("" ::: "memory");  // Every pass is made.
  }
  Store::finish();
}

}  // namespace
}  // namespace fairlap::roofs
