#include "fakes/fault_book.hpp"

namespace fairlap::fakes {

void FaultBook::fail(const std::string& function, std::int64_t nth, int error) {
  faults_.emplace(function, Fault{nth, error});
}

std::optional<int> FaultBook::enter(const std::string& function) {
  ++calls_[function];
  ++all_calls_;
  const std::optional<int> own = due(function);
  const std::optional<int> any = due("*");
  return own ? own : any;
}

std::optional<int> FaultBook::due(const std::string& key) {
  std::optional<int> error;
  auto [fault, last] = faults_.equal_range(key);
  while (fault != last) {
    if (fault->second.calls_left == 0) {
      error = fault->second.error;
    } else if (--fault->second.calls_left == 0) {
      error = fault->second.error;
      fault = faults_.erase(fault);
      continue;
    }
    ++fault;
  }
  return error;
}

std::int64_t FaultBook::calls(const std::string& function) const {
  if (function == "*") return all_calls_;
  const auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}

void FaultBook::forget_faults() { faults_.clear(); }

void FaultBook::reset_counts() {
  calls_.clear();
  all_calls_ = 0;
}

}  // namespace fairlap::fakes
