#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "clock/clock.hpp"
#include "loop/token_stamps.hpp"

namespace fairlap::bindings {

// The stamps of one contestant's answers. While it does not record, answers leave no stamps.
class AnswerStamps {
 public:
  AnswerStamps(std::size_t tokens, std::size_t most_answers, const clock::Clock& on_clock);

  void record(bool on) noexcept { records_ = on; }

  // Needs the interpreter lock, as the memory is shared between threads. Empty while nothing is recorded.
  [[nodiscard]] std::span<std::uint64_t> begin() noexcept;
  void stamp(std::span<std::uint64_t> row, std::size_t token) const noexcept {
    if (!row.empty()) row[loop::TokenStamps::kHead + token] = clock_.finish();
  }

  [[nodiscard]] std::size_t width() const noexcept { return stamps_.width(); }

  // The newest complete answers, the oldest of them first: thread, the clock when it began, and for each
  // token the time since then, in nanoseconds.
  [[nodiscard]] std::vector<double> newest(std::size_t count) const;

 private:
  const clock::Clock& clock_;
  loop::TokenStamps stamps_;
  bool records_ = true;
};

// One answer: the prompt goes in, then one token after another, and each step gives what was chosen, its
// logits and the state that the next one takes. The next token is handed over when the chosen one is on the
// host.
class PythonAnswer {
 public:
  using EachToken = pybind11::typing::List<pybind11::object>;
  using Answer = pybind11::typing::Tuple<EachToken, EachToken>;

  PythonAnswer(pybind11::object first, pybind11::object next, pybind11::object prompt,
               std::vector<pybind11::object> tokens, std::size_t items, std::shared_ptr<AnswerStamps> stamps);

  // The chosen tokens and the logits, a list of each.
  [[nodiscard]] Answer operator()() const;

 private:
  pybind11::object first_, next_, prompt_;
  std::vector<pybind11::object> tokens_;
  std::size_t items_;
  std::shared_ptr<AnswerStamps> stamps_;
};

}  // namespace fairlap::bindings
