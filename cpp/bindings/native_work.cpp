#include "bindings/native_work.hpp"

#include <exception>

namespace py = pybind11;

namespace fairlap::bindings {

bool NativeWork::leave() noexcept {
  const PyGILState_STATE lock = PyGILState_Ensure();
  const bool stop = PyErr_CheckSignals() != 0;
  if (stop) exception_.emplace();
  PyGILState_Release(lock);
  return stop;
}

bool NativeWork::keep_cpp_exception() noexcept {
  try {
    throw;
  } catch (const std::exception& error) {
    thrown_ = std::string("the native function threw: ") + error.what();
  } catch (...) {
    thrown_ = "the native function threw something that is not a std::exception";
  }
  return false;
}

py::object NativeWork::exception() const {
  if (exception_) return py::reinterpret_borrow<py::object>(exception_->value());
  if (thrown_) return py::reinterpret_borrow<py::object>(PyExc_RuntimeError)(*thrown_);
  return py::none();
}

}  // namespace fairlap::bindings
