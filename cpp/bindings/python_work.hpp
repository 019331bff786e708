#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <vector>

#include "loop/work.hpp"

namespace fairlap::bindings {

// How drawn calls are made: `callable(number)` returns what is called, and `look(number, result, wall_ns)`
// gets what it returned. Both are None where no calls are drawn.
struct Drawing {
  pybind11::object callable;
  pybind11::object look;
};

// Python callables, taking turns, called by vectorcall with arguments bound beforehand. Made and destroyed
// with the interpreter lock held; between enter() and leave() it holds the lock, elsewhere it does not.
class PythonWork final : public loop::Work {
 public:
  PythonWork(std::vector<pybind11::object> calls, const pybind11::tuple& args, const pybind11::dict& kwargs,
             pybind11::object completion, Drawing drawing);
  ~PythonWork() override;

  void enter() noexcept override { lock_ = PyGILState_Ensure(); }
  bool leave() noexcept override {
    PyGILState_Release(lock_);
    return false;  // Asked after every sample already, in stop_requested().
  }

  bool call() noexcept override {
    PyObject* const turn = calls_[turn_].ptr();
    if (++turn_ == calls_.size()) turn_ = 0;
    PyObject* const result = PyObject_Vectorcall(
        turn, arguments_.data() + 1, positional_ | PY_VECTORCALL_ARGUMENTS_OFFSET, keyword_names_.ptr());
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
    if (!keeps_result_) [[likely]]
      Py_CLEAR(result_);
    return true;
  }

  bool begin_drawn(std::size_t number) noexcept override;
  bool end_drawn(std::size_t number, double wall_ns) noexcept override;

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

  std::vector<pybind11::object> calls_;
  std::size_t turn_ = 0;
  std::vector<pybind11::object> waiting_calls_;  // while a drawn call is made
  std::size_t waiting_turn_ = 0;
  bool keeps_result_ = false;
  pybind11::object completion_;
  Drawing drawing_;
  std::vector<pybind11::object> kept_alive_;
  std::vector<PyObject*> arguments_;  // the first place is the callee's to use (PEP 590)
  std::size_t positional_;
  pybind11::object keyword_names_;
  PyObject* result_ = nullptr;
  PyGILState_STATE lock_{};
  std::optional<pybind11::error_already_set> exception_;
};

}  // namespace fairlap::bindings
