#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <utility>
#include <vector>

#include "bindings/drawing.hpp"
#include "loop/work.hpp"

namespace fairlap::bindings {

// A callable with its arguments, and the function that runs it (PEP 590): going through PyObject_Vectorcall
// looks it up and checks its result again for each call, which costs 2 ns of 20.
class BoundCall {
 public:
  // A tuple of the callable, its arguments and its keywords.
  explicit BoundCall(const pybind11::tuple& bound);

  [[nodiscard]] PyObject* operator()() const noexcept {
    return run_(callable_.ptr(), arguments_.data() + 1, positional_ | PY_VECTORCALL_ARGUMENTS_OFFSET,
                keyword_names_.ptr());
  }

 private:
  pybind11::object callable_;
  vectorcallfunc run_;
  std::vector<pybind11::object> kept_alive_;
  mutable std::vector<PyObject*> arguments_;  // the first place is the callee's to use
  std::size_t positional_;
  pybind11::object keyword_names_;
};

// Python callables, taking turns, called by vectorcall with arguments bound beforehand. Made and destroyed
// with the interpreter lock held; between enter() and leave() it holds the lock, elsewhere it does not.
class PythonWork final : public loop::Work {
 public:
  PythonWork(const std::vector<pybind11::tuple>& calls, pybind11::object completion, Drawing drawing,
             pybind11::object preparation);
  ~PythonWork() override;

  void enter() noexcept override { lock_ = PyGILState_Ensure(); }
  bool leave() noexcept override {
    const bool stop = !exception_ && PyErr_CheckSignals() != 0;
    if (stop) keep_exception();
    PyGILState_Release(lock_);
    return stop;
  }

  bool prepare() noexcept override {
    PyObject* const prepared = PyObject_CallNoArgs(preparation_.ptr());
    if (prepared == nullptr) return keep_exception();
    Py_DECREF(prepared);
    return true;
  }

  bool call() noexcept override {
    const BoundCall& turn = calls_[turn_];
    if (++turn_ == calls_.size()) turn_ = 0;
    PyObject* const result = turn();
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

  bool stop_requested() noexcept override { return false; }  // asked in leave(), a slice later at most

  [[nodiscard]] bool has_completion() const noexcept override { return !completion_.is_none(); }
  [[nodiscard]] bool has_preparation() const noexcept override { return !preparation_.is_none(); }

  // What ended the run, if anything was raised. Needs the interpreter lock.
  [[nodiscard]] pybind11::object exception() const;

 private:
  bool keep_exception() noexcept;  // Always false, so that a failing call can return it.

  std::vector<BoundCall> calls_;
  std::size_t turn_ = 0;
  std::vector<BoundCall> waiting_calls_;  // while a drawn call is made
  std::size_t waiting_turn_ = 0;
  bool keeps_result_ = false;
  pybind11::object completion_;
  Drawing drawing_;
  pybind11::object preparation_;
  PyObject* result_ = nullptr;
  PyGILState_STATE lock_{};
  std::optional<pybind11::error_already_set> exception_;
};

}  // namespace fairlap::bindings
