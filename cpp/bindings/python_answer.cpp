#include "bindings/python_answer.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace py = pybind11;

namespace fairlap::bindings {
namespace {

// Whole numbers of Python, so that no framework can give a promise of them.
void require_on_host(const py::handle chosen, std::size_t items) {
  const bool fits =
      PyList_CheckExact(chosen.ptr()) && static_cast<std::size_t>(PyList_GET_SIZE(chosen.ptr())) == items;
  bool whole = fits;
  for (std::size_t item = 0; whole && item < items; ++item) {
    whole = PyLong_CheckExact(PyList_GET_ITEM(chosen.ptr(), static_cast<Py_ssize_t>(item)));
  }
  if (whole) return;
  throw py::type_error("a step must give its chosen tokens as a list of " + std::to_string(items) +
                       " whole numbers, not " + std::string(py::str(py::type::of(chosen))));
}

}  // namespace

AnswerStamps::AnswerStamps(std::size_t tokens, std::size_t most_answers, const clock::Clock& on_clock)
    : clock_(on_clock), stamps_(tokens, most_answers) {}

std::span<std::uint64_t> AnswerStamps::begin() noexcept {
  if (!records_) return {};
  return stamps_.begin(PyThread_get_thread_ident(), clock_.start());
}

std::vector<double> AnswerStamps::newest(std::size_t count) const {
  std::vector<double> rows;
  const std::size_t held = std::min(count, stamps_.held());
  rows.reserve(held * width());
  for (std::size_t number = held; number-- > 0;) {
    const std::span<const std::uint64_t> row = stamps_.newest(number);
    if (row.back() == 0) continue;  // It raised, or is not done yet.
    rows.push_back(static_cast<double>(row[0]));
    rows.push_back(clock_.ns_of(row[1]));
    for (const std::uint64_t stamp : row.subspan(loop::TokenStamps::kHead)) {
      rows.push_back(clock_.ns_of(stamp - row[1]));
    }
  }
  return rows;
}

PythonAnswer::PythonAnswer(py::object first, py::object next, py::object prompt,
                           std::vector<py::object> tokens, std::size_t items,
                           std::shared_ptr<AnswerStamps> stamps)
    : first_(std::move(first)),
      next_(std::move(next)),
      prompt_(std::move(prompt)),
      tokens_(std::move(tokens)),
      items_(items),
      stamps_(std::move(stamps)) {
  if (stamps_->width() != loop::TokenStamps::kHead + tokens_.size() + 1) {
    throw py::value_error("an answer has one token more than it is given after its prompt");
  }
}

PythonAnswer::Answer PythonAnswer::operator()() const {
  const std::span<std::uint64_t> row = stamps_->begin();
  py::list chosen(tokens_.size() + 1);
  py::list logits(tokens_.size() + 1);
  py::object state;
  for (std::size_t token = 0; token <= tokens_.size(); ++token) {
    const py::object step =
        token == 0 ? first_(prompt_) : next_(std::exchange(state, py::object()), tokens_[token - 1]);
    if (!PyTuple_CheckExact(step.ptr()) || PyTuple_GET_SIZE(step.ptr()) != 3) {
      throw py::type_error("a step must give a tuple of its chosen tokens, its logits and its state");
    }
    const auto parts = py::reinterpret_borrow<py::tuple>(step);
    require_on_host(parts[0], items_);
    stamps_->stamp(row, token);
    chosen[token] = parts[0];
    logits[token] = parts[1];
    state = parts[2];
  }
  return py::make_tuple(std::move(chosen), std::move(logits));
}

}  // namespace fairlap::bindings
