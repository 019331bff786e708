#pragma once

#include <pybind11/pybind11.h>

namespace fairlap::bindings {

// How drawn calls are made: `call(number)` gives what is called, and `look(number, result, wall_ns)` gets
// what it returned. Both are None where no calls are drawn.
struct Drawing {
  pybind11::object call;
  pybind11::object look;
};

}  // namespace fairlap::bindings
