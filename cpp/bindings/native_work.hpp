#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>

#include "loop/work.hpp"

namespace fairlap::bindings {

// void f(void* context). A function that takes nothing may be given too: the calling conventions we
// run on let a callee ignore an argument.
using NativeFunction = void (*)(void* context);

struct NativeTarget {
  NativeFunction function = nullptr;
  void* context = nullptr;
};

// A C or C++ function timed without Python. The interpreter lock is taken for a moment after each
// slice of samples, outside the stamps, to look for Ctrl-C.
class NativeWork final : public loop::Work {
 public:
  NativeWork(NativeTarget call, NativeTarget completion) noexcept : call_(call), completion_(completion) {}

  void enter() noexcept override {}
  bool leave() noexcept override;

  bool call() noexcept override { return run(call_); }
  bool wait() noexcept override { return run(completion_); }
  bool drop() noexcept override { return true; }
  bool stop_requested() noexcept override { return false; }
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

  NativeTarget call_;
  NativeTarget completion_;
  std::optional<std::string> thrown_;
  std::optional<pybind11::error_already_set> exception_;
};

}  // namespace fairlap::bindings
