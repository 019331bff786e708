#include "bindings/python_work.hpp"

#include <utility>

namespace py = pybind11;

namespace fairlap::bindings {

PythonWork::PythonWork(py::object call, const py::tuple& args, const py::dict& kwargs, py::object completion)
    : call_(std::move(call)),
      completion_(std::move(completion)),
      arguments_{nullptr},
      positional_(args.size()) {
  for (const py::handle value : args) kept_alive_.push_back(py::reinterpret_borrow<py::object>(value));
  py::list names;
  for (const auto& [name, value] : kwargs) {
    names.append(name);
    kept_alive_.push_back(py::reinterpret_borrow<py::object>(value));
  }
  if (!names.empty()) keyword_names_ = py::tuple(names);
  for (const py::object& value : kept_alive_) arguments_.push_back(value.ptr());
}

PythonWork::~PythonWork() { Py_CLEAR(result_); }

bool PythonWork::keep_exception() noexcept {
  exception_.emplace();  // Takes the raised exception over from the interpreter.
  return false;
}

py::object PythonWork::exception() const {
  return exception_ ? py::reinterpret_borrow<py::object>(exception_->value()) : py::none();
}

}  // namespace fairlap::bindings
