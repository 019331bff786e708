#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "load/service.hpp"

namespace fairlap::bindings {

// The results that are looked at: `look(request, result)` for each request with a flag.
struct Keeping {
  std::span<const std::uint8_t> kept;
  pybind11::object look;  // None: no result is looked at
};

// Python callables that answer requests, one for each item. Made and destroyed with the interpreter lock
// held; the worker's thread holds it from a call until its result is dropped, and nowhere else.
class PythonService final : public load::Service {
 public:
  // `items` is an array with the item of every request; a slice of it is what `batch_call` gets. `batch_call`
  // and `done` may be None.
  PythonService(std::vector<pybind11::object> calls, pybind11::object batch_call, pybind11::object done);

  // Before the load.
  void prepare(pybind11::object items_array, std::span<const std::uint32_t> items, Keeping keeping);

  void enter() override;
  void leave() override;
  bool serve(const load::Group& group) override;
  bool settle(const load::Group& group, bool may_look) override;

  [[nodiscard]] std::size_t items() const noexcept { return calls_.size(); }

  // What was raised, or None. Needs the interpreter lock.
  [[nodiscard]] pybind11::object exception() const;

 private:
  [[nodiscard]] PyObject* call_batch(const load::Group& group) const;
  [[nodiscard]] bool look(const load::Group& group);
  bool keep_exception();  // Always false, so that a failing call can return it.

  std::vector<pybind11::object> calls_;
  pybind11::object batch_call_;
  pybind11::object done_;
  pybind11::object items_array_;
  std::span<const std::uint32_t> items_;
  Keeping keeping_;
  PyObject* result_ = nullptr;
  PyGILState_STATE before_{};
  PyThreadState* thread_ = nullptr;
  std::optional<pybind11::error_already_set> exception_;
};

}  // namespace fairlap::bindings
