#include <vector>

#include "roofs/kernel.hpp"
#include "roofs/kernel_sets.hpp"

namespace fairlap::roofs {
namespace {

struct AllKernels {
  std::vector<ArithmeticKernel> arithmetic;
  std::vector<TriadKernel> triad;

  void add(const KernelSet& set) {
    arithmetic.insert(arithmetic.end(), set.arithmetic.begin(), set.arithmetic.end());
    triad.insert(triad.end(), set.triad.begin(), set.triad.end());
  }
  AllKernels() {
    add(kBaselineKernels);
#if defined(FAIRLAP_ROOFS_X86)
    add(kAvx2Kernels);
    add(kAvx512Kernels);
    add(kAvx512Bf16Kernels);
    add(kAvx512Fp16Kernels);
    add(kAvx512VnniKernels);
    add(kAvxVnniKernels);
    add(kAmxKernels);
#endif
  }
};

const AllKernels& all_kernels() {
  static const AllKernels all;
  return all;
}

}  // namespace

std::span<const ArithmeticKernel> arithmetic_kernels() { return all_kernels().arithmetic; }
std::span<const TriadKernel> triad_kernels() { return all_kernels().triad; }

}  // namespace fairlap::roofs
