#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "cuda/driver/kernels.hpp"
#include "cuda/driver/owned.hpp"
#include "cuda/gate/watchdog.hpp"

namespace fairlap::cuda {

enum class GateKind { none, stream_wait, spin };

// Holds a stream while the host enqueues a sample behind it, so that the launches of the host are not part of
// what the device's events span. Every closing has its own ticket, and the flag counts the tickets
// opened; a late release of an old gate can therefore never open a newer one.
class Gate {
 public:
  // The gate is opened by the watchdog after `limit`; a spin kernel also ends by itself somewhat later.
  Gate(const BorrowedContext& context, GateKind kind, const Kernels* kernels, std::chrono::nanoseconds limit);
  ~Gate();

  Gate(const Gate&) = delete;  // The device holds the address of its flag.
  Gate& operator=(const Gate&) = delete;

  [[nodiscard]] GateKind kind() const noexcept { return kind_; }

  // From here on the stream is held. The context must be current when the stream is a default one.
  void close(CUstream stream);

  // Lets the stream run. False when it was running already: the limit passed before.
  bool open() noexcept;

  void abandon() noexcept { flag_.abandon(); }

 private:
  void release(std::uint32_t ticket) noexcept;

  const Driver& driver_;
  GateKind kind_;
  const Kernels* kernels_;
  std::chrono::nanoseconds limit_;
  MappedMemory flag_;
  std::uint32_t* words_;  // the last ticket opened; the last ticket at which a spin kernel gave up
  std::uint32_t ticket_ = 0;
  std::unique_ptr<Watchdog> watchdog_;
};

// Whether a gate works here, found by holding a stream and letting it go.
struct GateProbe {
  bool works = false;
  std::string why_not;
  double release_ns = 0.0;  // from opening the gate to seeing the stream past it, at the median
};

// Tries the gate on a private stream, except for the default streams, which are of another kind: those are
// tried themselves. They must be idle.
GateProbe probe_gate(const BorrowedStream& stream, GateKind kind, const Kernels* kernels);

}  // namespace fairlap::cuda
