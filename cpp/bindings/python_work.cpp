#include "bindings/python_work.hpp"

#include <iterator>
#include <utility>

namespace py = pybind11;

namespace fairlap::bindings {

PythonWork::PythonWork(std::vector<py::object> calls, const py::tuple& args, const py::dict& kwargs,
                       py::object completion, Drawing drawing)
    : calls_(std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end())),
      completion_(std::move(completion)),
      drawing_(std::move(drawing)),
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

bool PythonWork::begin_drawn(std::size_t number) noexcept {
  const py::gil_scoped_acquire lock;
  PyObject* const drawn =
      PyObject_CallFunction(drawing_.callable.ptr(), "n", static_cast<Py_ssize_t>(number));
  if (drawn == nullptr) return keep_exception();
  waiting_calls_ = std::exchange(calls_, {Callee(py::reinterpret_steal<py::object>(drawn))});
  waiting_turn_ = std::exchange(turn_, 0);
  keeps_result_ = true;
  return true;
}

bool PythonWork::end_drawn(std::size_t number, double wall_ns) noexcept {
  const py::gil_scoped_acquire lock;
  calls_ = std::exchange(waiting_calls_, {});
  turn_ = waiting_turn_;
  keeps_result_ = false;
  if (result_ == nullptr) return true;  // The call raised, which is reported by the loop.
  PyObject* const looked =
      PyObject_CallFunction(drawing_.look.ptr(), "nOd", static_cast<Py_ssize_t>(number), result_, wall_ns);
  Py_CLEAR(result_);
  if (looked == nullptr) return keep_exception();
  Py_DECREF(looked);
  return true;
}

bool PythonWork::keep_exception() noexcept {
  if (PyErr_Occurred() == nullptr)
    PyErr_SetString(PyExc_SystemError, "the callable returned no result and raised nothing");
  exception_.emplace();  // Takes the raised exception over from the interpreter.
  return false;
}

py::object PythonWork::exception() const {
  return exception_ ? py::reinterpret_borrow<py::object>(exception_->value()) : py::none();
}

}  // namespace fairlap::bindings
