#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/drawing.hpp"
#include "loop/work.hpp"

namespace fairlap::bindings {

// void f(void* context). A function that takes nothing may be given too: the calling conventions we
// run on let a callee ignore an argument.
using NativeFunction = void (*)(void* context);

struct NativeTarget {
  NativeFunction function = nullptr;
  void* context = nullptr;
};

// A C or C++ function timed without Python, on contexts that take turns. The interpreter lock is taken for a
// moment after each slice of samples, outside the stamps, to look for Ctrl-C. A drawn call gets the context
// that its drawing gives, and the look gets None: what the function answered is in that context.
class NativeWork final : public loop::Work {
 public:
  NativeWork(NativeFunction function, std::vector<void*> contexts, NativeTarget completion, Drawing drawing)
      : function_(function),
        contexts_(std::move(contexts)),
        completion_(completion),
        drawing_(std::move(drawing)) {}

  void enter() noexcept override {}
  bool leave() noexcept override;

  bool call() noexcept override {
    void* const context = contexts_[turn_];
    if (++turn_ == contexts_.size()) turn_ = 0;
    return run({function_, context});
  }
  bool wait() noexcept override { return run(completion_); }
  bool drop() noexcept override { return true; }
  bool stop_requested() noexcept override { return false; }
  bool begin_drawn(std::size_t number) noexcept override;
  bool end_drawn(std::size_t number, double wall_ns) noexcept override;
  [[nodiscard]] bool has_completion() const noexcept override { return completion_.function != nullptr; }

  // What ended the run, if anything was raised. Needs the interpreter lock.
  [[nodiscard]] pybind11::object exception() const;

 private:
  // A C++ exception may not travel through the loop; it costs nothing to catch while none is thrown.
  bool run(const NativeTarget& target) noexcept try {
    target.function(target.context);
    return true;
  } catch (...) {
    return keep_cpp_exception();
  }
  bool keep_cpp_exception() noexcept;
  bool keep_python_exception() noexcept;

  NativeFunction function_;
  std::vector<void*> contexts_;
  std::size_t turn_ = 0;
  std::vector<void*> waiting_contexts_;  // while a drawn call is made
  std::size_t waiting_turn_ = 0;
  NativeTarget completion_;
  Drawing drawing_;
  std::optional<std::string> thrown_;
  std::optional<pybind11::error_already_set> exception_;
};

}  // namespace fairlap::bindings
