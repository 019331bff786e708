#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "loop/work.hpp"

namespace fairlap::cuda {

// Calls several works in turn: one callable with several sets of arguments, so that none finds its data in
// the cache. They share one interpreter, so the first one's lock is shared by all.
class RotatingWork final : public loop::Work {
 public:
  explicit RotatingWork(std::vector<loop::Work*> works)
      : works_(std::move(works)), current_(works_.size() - 1) {}

  void enter() noexcept override { works_.front()->enter(); }
  bool leave() noexcept override { return works_.front()->leave(); }

  bool call() noexcept override {
    static_cast<void>(
        works_[current_]->drop());  // As one callable gives its last result back when called again.
    current_ = (current_ + 1) % works_.size();
    return works_[current_]->call();
  }

  bool wait() noexcept override { return works_[current_]->wait(); }
  bool drop() noexcept override { return works_[current_]->drop(); }
  bool stop_requested() noexcept override { return works_.front()->stop_requested(); }
  [[nodiscard]] bool has_completion() const noexcept override { return works_.front()->has_completion(); }

 private:
  std::vector<loop::Work*> works_;
  std::size_t current_;
};

}  // namespace fairlap::cuda
