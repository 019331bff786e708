#include "bindings/python_work.hpp"

#include <exception>
#include <utility>

namespace py = pybind11;

namespace fairlap::bindings {

BoundCall::BoundCall(const py::tuple& bound) : callable_(bound[0]), arguments_{nullptr} {
  const vectorcallfunc own = PyVectorcall_Function(callable_.ptr());
  run_ = own != nullptr ? own : PyObject_Vectorcall;
  const auto positional = py::cast<py::tuple>(bound[1]);
  positional_ = positional.size();
  for (const py::handle value : positional) kept_alive_.push_back(py::reinterpret_borrow<py::object>(value));
  py::list names;
  for (const auto& [name, value] : py::cast<py::dict>(bound[2])) {
    names.append(name);
    kept_alive_.push_back(py::reinterpret_borrow<py::object>(value));
  }
  if (!names.empty()) keyword_names_ = py::tuple(names);
  for (const py::object& value : kept_alive_) arguments_.push_back(value.ptr());
}

PythonWork::PythonWork(const std::vector<py::tuple>& calls, py::object completion, Drawing drawing,
                       py::object preparation)
    : calls_(calls.begin(), calls.end()),
      completion_(std::move(completion)),
      drawing_(std::move(drawing)),
      preparation_(std::move(preparation)) {}

PythonWork::~PythonWork() { Py_CLEAR(result_); }

bool PythonWork::begin_drawn(std::size_t number) noexcept {
  const py::gil_scoped_acquire lock;
  try {
    std::vector<BoundCall> drawn;
    drawn.emplace_back(py::cast<py::tuple>(drawing_.call(number)));
    waiting_calls_ = std::exchange(calls_, std::move(drawn));
  } catch (py::error_already_set& error) {
    error.restore();
    return keep_exception();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
    return keep_exception();
  }
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
  const bool looked = drawing_.look_at(number, result_, wall_ns);
  Py_CLEAR(result_);
  return looked || keep_exception();
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
