#pragma once

#include <span>

#include "roofs/kernel.hpp"

namespace fairlap::roofs {

// The kernels of one instruction set. Constants and not functions: their file is compiled for that set, and a
// function in it could use its instructions on a processor that lacks them.
struct KernelSet {
  std::span<const ArithmeticKernel> arithmetic;
  std::span<const TriadKernel> triad;
};

extern const KernelSet kBaselineKernels;  // what every processor of the architecture has
#if defined(FAIRLAP_ROOFS_X86)
extern const KernelSet kAmxKernels;
extern const KernelSet kAvx2Kernels;
extern const KernelSet kAvx512Kernels;
extern const KernelSet kAvx512Bf16Kernels;
extern const KernelSet kAvx512Fp16Kernels;
extern const KernelSet kAvx512VnniKernels;
extern const KernelSet kAvxVnniKernels;
#endif

}  // namespace fairlap::roofs
