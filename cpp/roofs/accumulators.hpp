#pragma once

// Only for the files that hold kernels. Each is compiled for one instruction set, so everything here has
// internal linkage: the linker must never share such code with a file that is compiled for every processor.

#include <cstddef>
#include <cstdint>

namespace fairlap::roofs {
namespace {  // NOLINT(misc-anonymous-namespace-in-header): see above

// A multiply-add takes 4 to 5 cycles and up to four begin in a cycle (Apple, Neoverse V), two on x86. The
// accumulators, with two operands, have to fit into the vector registers, or the loop would measure memory.
constexpr int kAccumulatorsIn32Registers = 24;
constexpr int kAccumulatorsIn16Registers = 12;

template <class Element, int kVectorBytes>
struct MultiplyAdd {
  typedef Element Vector __attribute__((vector_size(kVectorBytes)));
  static constexpr double kOperations = 2.0 * kVectorBytes / sizeof(Element);

  // Approaches 2, so that no value becomes denormal or infinite, whose arithmetic can be slower.
  Vector factor = Vector{} + static_cast<Element>(0.5);
  Vector addend = Vector{} + static_cast<Element>(1.0);

  static Vector start(int place) { return Vector{} + static_cast<Element>(place); }
  void hide() { asm volatile("" : "+m"(factor), "+m"(addend)); }
  Vector operator()(Vector sum) const { return sum * factor + addend; }
};

template <class Step, int kAccumulators>
void run_rounds(std::uint64_t rounds) {
  Step step;
  step.hide();  // Otherwise the compiler could compute with constants.
  const Step in_registers = step;
  typename Step::Vector sums[kAccumulators];
#pragma GCC unroll 32
  for (int i = 0; i < kAccumulators; ++i) sums[i] = Step::start(i);
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (int i = 0; i < kAccumulators; ++i) sums[i] = in_registers(sums[i]);
  }
  asm volatile("" ::"r"(&sums) : "memory");  // All sums are used.
}

}  // namespace
}  // namespace fairlap::roofs
