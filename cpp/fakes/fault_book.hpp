#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace fairlap::fakes {

// Counts the calls of every function of a fake library and decides which of them must fail.
// It has no lock: each fake calls it under the lock of its world.
class FaultBook {
 public:
  // The nth call from now on returns `error`; nth 0 means every call from now on. The function "*"
  // stands for any function, so that a test can walk through all failures of a path by their number.
  void fail(const std::string& function, std::int64_t nth, int error);

  // Takes note of a call; gives the error that it has to return, if any.
  std::optional<int> enter(const std::string& function);

  [[nodiscard]] std::int64_t calls(const std::string& function) const;
  void forget_faults();
  void reset_counts();

 private:
  struct Fault {
    std::int64_t calls_left;  // 0: every call
    int error;
  };
  std::optional<int> due(const std::string& key);

  std::map<std::string, std::int64_t> calls_;
  std::multimap<std::string, Fault> faults_;
  std::int64_t all_calls_ = 0;
};

}  // namespace fairlap::fakes
