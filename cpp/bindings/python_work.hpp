#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <vector>

#include "loop/work.hpp"

namespace fairlap::bindings {

// A Python callable called by vectorcall with arguments bound beforehand. Made and destroyed with the
// interpreter lock held; between enter() and leave() it holds the lock, elsewhere it does not.
class PythonWork final : public loop::Work {
 public:
  PythonWork(pybind11::object call, const pybind11::tuple& args, const pybind11::dict& kwargs,
             pybind11::object completion);
  ~PythonWork() override;

  void enter() noexcept override { lock_ = PyGILState_Ensure(); }
  bool leave() noexcept override {
    PyGILState_Release(lock_);
    return false;  // Asked after every sample already, in stop_requested().
  }

  bool call() noexcept override {
    PyObject* const result =
        PyObject_Vectorcall(call_.ptr(), arguments_.data() + 1, positional_ | PY_VECTORCALL_ARGUMENTS_OFFSET,
                            keyword_names_.ptr());
    Py_XSETREF(result_, result);
    if (result != nullptr) [[likely]]
      return true;
    return keep_exception();
  }

  bool wait() noexcept override {
    if (result_ == nullptr) return false;
    PyObject* const waited = PyObject_CallOneArg(completion_.ptr(), result_);
    if (waited == nullptr) return keep_exception();
    Py_DECREF(waited);
    return true;
  }

  bool drop() noexcept override {
    Py_CLEAR(result_);
    return true;
  }

  bool stop_requested() noexcept override {
    if (PyErr_CheckSignals() == 0) [[likely]]
      return false;
    keep_exception();
    return true;
  }

  [[nodiscard]] bool has_completion() const noexcept override { return !completion_.is_none(); }

  // What ended the run, if anything was raised. Needs the interpreter lock.
  [[nodiscard]] pybind11::object exception() const;

 private:
  bool keep_exception() noexcept;  // Always false, so that a failing call can return it.

  pybind11::object call_;
  pybind11::object completion_;
  std::vector<pybind11::object> kept_alive_;
  std::vector<PyObject*> arguments_;  // the first place is the callee's to use (PEP 590)
  std::size_t positional_;
  pybind11::object keyword_names_;
  PyObject* result_ = nullptr;
  PyGILState_STATE lock_{};
  std::optional<pybind11::error_already_set> exception_;
};

}  // namespace fairlap::bindings
