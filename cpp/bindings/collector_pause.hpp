#pragma once

#include <pybind11/pybind11.h>

namespace fairlap::bindings {

// Keeps the cyclic garbage collector from running inside a sample, and puts it back as it was however
// the measurement ends. Made and destroyed with the interpreter lock held.
class CollectorPause {
 public:
  explicit CollectorPause(bool wanted) noexcept : wanted_(wanted), was_on_(wanted && PyGC_Disable() == 1) {}
  ~CollectorPause() {
    if (!wanted_) return;
    if (was_on_) {
      PyGC_Enable();
    } else {
      PyGC_Disable();
    }
  }
  // True when the timed callable switched the collector on again behind our back.
  [[nodiscard]] bool undone() const noexcept { return wanted_ && PyGC_IsEnabled() == 1; }

  CollectorPause(const CollectorPause&) = delete;
  CollectorPause& operator=(const CollectorPause&) = delete;

 private:
  bool wanted_;
  bool was_on_;
};

}  // namespace fairlap::bindings
