#include "bindings/native_work.hpp"

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace fairlap::bindings {

bool NativeWork::leave() noexcept {
  const PyGILState_STATE lock = PyGILState_Ensure();
  const bool stop = PyErr_CheckSignals() != 0;
  if (stop) exception_.emplace();
  PyGILState_Release(lock);
  return stop;
}

bool NativeWork::begin_drawn(std::size_t number) noexcept {
  const py::gil_scoped_acquire lock;
  try {
    const auto context = py::cast<std::uintptr_t>(drawing_.call(number));
    waiting_contexts_ = std::exchange(contexts_, {reinterpret_cast<void*>(context)});
  } catch (py::error_already_set& error) {
    error.restore();
    return keep_python_exception();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
    return keep_python_exception();
  }
  waiting_turn_ = std::exchange(turn_, 0);
  return true;
}

bool NativeWork::end_drawn(std::size_t number, double wall_ns) noexcept {
  const py::gil_scoped_acquire lock;
  contexts_ = std::exchange(waiting_contexts_, {});
  turn_ = waiting_turn_;
  if (thrown_) return true;  // which is reported by the loop
  return drawing_.look_at(number, Py_None, wall_ns) || keep_python_exception();
}

bool NativeWork::keep_python_exception() noexcept {
  exception_.emplace();  // Takes the raised exception over from the interpreter.
  return false;
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
