#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>

namespace fairlap::bindings {

// How drawn calls are made: `call(number)` gives what is called, and `look(number, result, wall_ns)` gets
// what it returned. Both are None where no calls are drawn.
struct Drawing {
  pybind11::object call;
  pybind11::object look;

  // Whether the look went well; otherwise the interpreter has an exception. `result` is borrowed.
  [[nodiscard]] bool look_at(std::size_t number, PyObject* result, double wall_ns) const noexcept {
    PyObject* const looked =
        PyObject_CallFunction(look.ptr(), "nOd", static_cast<Py_ssize_t>(number), result, wall_ns);
    Py_XDECREF(looked);
    return looked != nullptr;
  }
};

}  // namespace fairlap::bindings
