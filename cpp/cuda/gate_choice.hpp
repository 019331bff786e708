#pragma once

#include <string>

#include "cuda/gate.hpp"
#include "cuda/stream_run.hpp"

namespace fairlap::cuda {

struct GateChoice {
  GateKind kind = GateKind::none;
  std::string because;  // why not a better one
  double release_ns = kNotMeasured;
};

// A gate that was asked for by name and does not work is an error; automatic takes the best that does and
// says why.
GateChoice choose_gate(const BorrowedStream& stream, GateWish wish, const Kernels* kernels);

}  // namespace fairlap::cuda
