#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace fairlap::load {

enum class Decided { not_yet, met, missed };

// When the share of late requests is decided, by the number of completed requests: so many late ones or more
// mean that the bound is missed, so many or fewer that it is met. What stands there is the caller's
// statistics.
struct Decision {
  double bound_ns = std::numeric_limits<double>::infinity();
  std::span<const std::uint32_t> missed_at;
  std::span<const std::int32_t> met_at;  // -1: cannot be met yet

  [[nodiscard]] Decided after(std::uint32_t completed, std::uint32_t late) const noexcept {
    if (completed < missed_at.size() && late >= missed_at[completed]) return Decided::missed;
    if (completed < met_at.size() && static_cast<std::int64_t>(late) <= met_at[completed])
      return Decided::met;
    return Decided::not_yet;
  }
};

// Completed and late requests, counted together so that every worker sees a pair that was true at one moment.
class Tally {
 public:
  explicit Tally(const Decision& decision) noexcept : decision_(decision) {}
  Tally(const Tally&) = delete;  // The workers share it.
  Tally& operator=(const Tally&) = delete;

  struct Counted {
    std::uint32_t completed;
    Decided decided;
  };
  // Requests that were completed at once. The decision is looked up after the last of them.
  Counted add(std::uint32_t completed, std::uint32_t late) noexcept {
    constexpr unsigned kHalf = 32;
    const std::uint64_t more = (std::uint64_t{completed} << kHalf) | late;
    const std::uint64_t now = counts_.fetch_add(more, std::memory_order_acq_rel) + more;
    const auto all_completed = static_cast<std::uint32_t>(now >> kHalf);
    const auto all_late = static_cast<std::uint32_t>(now);
    return {.completed = all_completed, .decided = decision_.after(all_completed, all_late)};
  }
  [[nodiscard]] double bound_ns() const noexcept { return decision_.bound_ns; }

 private:
  Decision decision_;
  std::atomic<std::uint64_t> counts_{0};
};

}  // namespace fairlap::load
