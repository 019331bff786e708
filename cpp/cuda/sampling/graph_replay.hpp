#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "cuda/stream/borrowed_stream.hpp"
#include "loop/work.hpp"

namespace fairlap::cuda {

// The callable cannot be captured as a graph; the message names what forbids it.
class CaptureFailed : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A work captured once as a CUDA graph; calling this replays the graph. What the captured call returned is
// kept for as long as the graph may run, because the graph writes into it.
class GraphReplay final : public loop::Work {
 public:
  GraphReplay(const BorrowedStream& stream, loop::Work& captured);
  ~GraphReplay() override;

  // Runs the work once, capturing. False when the work raised; the exception stays with it.
  bool capture();

  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_; }
  [[nodiscard]] CUresult launch_error() const noexcept { return launch_error_; }

  // Launching needs the context, not the interpreter.
  void enter() noexcept override;
  bool leave() noexcept override;
  bool call() noexcept override;
  bool wait() noexcept override { return true; }
  bool drop() noexcept override { return true; }
  bool stop_requested() noexcept override;
  [[nodiscard]] bool has_completion() const noexcept override { return false; }

 private:
  void instantiate(CUgraph graph);

  const BorrowedStream& stream_;
  const Driver& driver_;
  loop::Work& captured_;
  CUgraphExec executable_ = nullptr;
  std::size_t nodes_ = 0;
  CUresult launch_error_ = CUDA_SUCCESS;
  bool context_is_current_ = false;
  unsigned int asked_ = 0;
};

}  // namespace fairlap::cuda
