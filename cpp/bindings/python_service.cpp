#include "bindings/python_service.hpp"

#include <utility>

namespace py = pybind11;

namespace fairlap::bindings {

PythonService::PythonService(std::vector<py::object> calls, py::object batch_call, py::object done)
    : calls_(std::move(calls)), batch_call_(std::move(batch_call)), done_(std::move(done)) {}

void PythonService::prepare(py::object items_array, std::span<const std::uint32_t> items, Keeping keeping) {
  items_array_ = std::move(items_array);
  items_ = items;
  keeping_ = std::move(keeping);
  exception_.reset();
}

void PythonService::enter() {
  before_ = PyGILState_Ensure();
  thread_ = PyEval_SaveThread();
}

void PythonService::leave() {
  PyEval_RestoreThread(thread_);
  PyGILState_Release(before_);
}

bool PythonService::serve(const load::Group& group) {
  PyEval_RestoreThread(thread_);
  result_ = group.count == 1 ? PyObject_CallNoArgs(calls_[items_[group.first]].ptr()) : call_batch(group);
  if (result_ == nullptr) return keep_exception();
  if (done_.is_none()) return true;
  PyObject* const waited = PyObject_CallOneArg(done_.ptr(), result_);
  if (waited == nullptr) return keep_exception();
  Py_DECREF(waited);
  return true;
}

PyObject* PythonService::call_batch(const load::Group& group) const {
  const auto first = static_cast<Py_ssize_t>(group.first);
  PyObject* const items = PySequence_GetSlice(items_array_.ptr(), first, first + group.count);
  if (items == nullptr) return nullptr;
  PyObject* const result = PyObject_CallOneArg(batch_call_.ptr(), items);
  Py_DECREF(items);
  return result;
}

bool PythonService::settle(const load::Group& group, bool may_look) {
  const bool looked = !may_look || look(group);
  Py_CLEAR(result_);
  thread_ = PyEval_SaveThread();
  return looked;
}

bool PythonService::look(const load::Group& group) {
  if (keeping_.look.is_none()) return true;
  for (std::size_t request = group.first; request < group.first + group.count; ++request) {
    if (keeping_.kept[request] == 0) continue;
    PyObject* const looked =
        PyObject_CallFunction(keeping_.look.ptr(), "nO", static_cast<Py_ssize_t>(request), result_);
    if (looked == nullptr) return keep_exception();
    Py_DECREF(looked);
  }
  return true;
}

bool PythonService::keep_exception() {
  exception_.emplace();  // Takes the raised exception over from the interpreter.
  return false;
}

py::object PythonService::exception() const {
  return exception_ ? py::reinterpret_borrow<py::object>(exception_->value()) : py::none();
}

}  // namespace fairlap::bindings
