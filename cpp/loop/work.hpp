#pragma once

#include <cstddef>

namespace fairlap::loop {

// Why a loop came back before it had all its samples.
enum class Interruption { none, raised, stop_requested };

// What is timed, seen by an engine that knows no interpreter. A Python callable, a native function
// pointer and a test's scripted durations are all Works.
//
// The loop brackets a run of samples with enter() and leave(); a Python callable takes and gives up
// the interpreter lock there, so that counters are read and devices are waited for without it.
// Inside, one sample is: call() one or more times, then wait() and drop(). Each returns false when the
// work raised; the exception itself stays with the Work.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;  // A Work is borrowed by a running loop; copies would split its state.
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  virtual void enter() noexcept = 0;

  // What is done before each sample and is not part of it, such as emptying a device's cache. Returns false
  // when it raised.
  virtual bool prepare() noexcept { return true; }
  [[nodiscard]] virtual bool has_preparation() const noexcept { return false; }

  // True when the user asked to stop while the samples were taken. Python and native work ask here: asking
  // the interpreter after every sample would take 5 ns of each.
  virtual bool leave() noexcept = 0;

  // Issues the work once. Keeps what it returned until the next call() or finish().
  virtual bool call() noexcept = 0;

  // Waits until the issued work is complete, if a completion was given.
  virtual bool wait() noexcept = 0;

  // Drops what call() returned. Freeing it is part of what the work costs, so this is inside the
  // timed interval.
  virtual bool drop() noexcept = 0;

  // True when the user asked to stop (Ctrl-C), looked up between samples.
  virtual bool stop_requested() noexcept = 0;

  // Bracket a drawn call, a single timed one whose result is looked at when the clock has stopped. Between
  // them drop() keeps the result. Both return false when something raised.
  virtual bool begin_drawn(std::size_t /*number*/) noexcept { return true; }
  virtual bool end_drawn(std::size_t /*number*/, double /*wall_ns*/) noexcept { return true; }

  // True when there is a completion, that is, when host_issue and wall differ.
  [[nodiscard]] virtual bool has_completion() const noexcept = 0;
};

}  // namespace fairlap::loop
