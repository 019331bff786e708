#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "loop/prefaulted_memory.hpp"

namespace fairlap::loop {

// When the tokens of answers came, in memory that is taken beforehand. When it is full, new answers replace
// the oldest ones. Answers of several threads may overlap; who begins one holds a lock, such as the
// interpreter's.
class TokenStamps {
 public:
  TokenStamps(std::size_t tokens, std::size_t most_answers)
      : width_(kHead + tokens),
        most_answers_(most_answers),
        memory_(width_ * most_answers * sizeof(std::uint64_t)) {}

  // A row for a new answer: its thread, when it began, and a zero for each token that is to come.
  [[nodiscard]] std::span<std::uint64_t> begin(std::uint64_t thread, std::uint64_t began) noexcept {
    const std::span<std::uint64_t> begun = row(answers_++);
    for (std::uint64_t& each : begun) each = 0;
    begun[0] = thread;
    begun[1] = began;
    return begun;
  }

  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  [[nodiscard]] std::size_t held() const noexcept {
    return answers_ < most_answers_ ? answers_ : most_answers_;
  }

  // The newest answer is number 0.
  [[nodiscard]] std::span<const std::uint64_t> newest(std::size_t number) const noexcept {
    return row(answers_ - 1 - number);
  }

  static constexpr std::size_t kHead = 2;

 private:
  [[nodiscard]] std::span<std::uint64_t> row(std::size_t answer) const noexcept {
    return memory_.as<std::uint64_t>().subspan(answer % most_answers_ * width_, width_);
  }

  std::size_t width_;
  std::size_t most_answers_;
  PrefaultedMemory memory_;
  std::size_t answers_ = 0;
};

}  // namespace fairlap::loop
