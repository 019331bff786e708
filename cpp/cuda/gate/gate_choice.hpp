#pragma once

#include <optional>
#include <string>

#include "cuda/device/device_floor.hpp"
#include "cuda/gate/gate.hpp"

namespace fairlap::cuda {

struct GateChoice {
  GateKind kind = GateKind::none;
  std::string because;  // why not a better one
  double release_ns = kNotMeasured;
};

// CUDA_LAUNCH_BLOCKING=1, some debuggers and some checkers make every launch wait for its kernel, which
// behind a closed gate would wait until the watchdog opens it. Empty, or what makes launches wait.
std::string why_launches_wait(const BorrowedStream& stream, const Kernels* kernels);

// A gate that was asked for and does not work is an error. When none was asked for, the best that works is
// taken, with the reason why not a better one.
GateChoice choose_gate(const BorrowedStream& stream, std::optional<GateKind> asked, const Kernels* kernels);

}  // namespace fairlap::cuda
