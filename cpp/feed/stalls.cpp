#include "feed/stalls.hpp"

#include <algorithm>

namespace fairlap::feed {

void StallTimer::wait_begins(std::uint64_t now_ns) noexcept {
  sums_.consumer_ns += now_ns - since_ns_;
  since_ns_ = now_ns;
  waiting_ = true;
}

// Until the slot was given back, and until the device had copied from it and worked on it, no thread could
// fill it; from then on it waited for a thread, was read into and converted. A batch is read and converted in
// turns, so its reading is spread evenly over its filling.
void StallTimer::wait_ends(std::uint64_t now_ns, const SlotTimes& times, std::uint64_t samples,
                           std::uint64_t bytes) noexcept {
  const std::uint64_t waited_from = since_ns_;
  const std::uint64_t slot_free = std::clamp(times.emptied_ns, waited_from, now_ns);
  const std::uint64_t copied = std::clamp(times.copied_ns, slot_free, now_ns);
  const std::uint64_t unused = std::clamp(times.freed_ns, copied, now_ns);
  const std::uint64_t fill_from = std::clamp(times.claimed_ns, unused, now_ns);
  const std::uint64_t fill_to = std::clamp(times.filled_ns, fill_from, now_ns);
  const std::uint64_t fill_ns = times.filled_ns - times.claimed_ns;
  const double reading_share =
      fill_ns == 0 ? 0.0 : std::min(1.0, static_cast<double>(times.source_ns) / static_cast<double>(fill_ns));
  const auto source_ns = static_cast<std::uint64_t>(static_cast<double>(fill_to - fill_from) * reading_share);
  sums_.no_slot_ns += slot_free - waited_from + (unused - copied);
  sums_.link_ns += copied - slot_free;
  sums_.source_ns += source_ns;
  sums_.staging_ns += now_ns - unused - source_ns;
  ++sums_.batches;
  sums_.samples += samples;
  sums_.bytes += bytes;
  since_ns_ = now_ns;
  waiting_ = false;
}

void StallTimer::wait_ends_empty(std::uint64_t now_ns, bool all_held) noexcept {
  (all_held ? sums_.no_slot_ns : sums_.staging_ns) += now_ns - since_ns_;
  since_ns_ = now_ns;
  waiting_ = false;
}

void StallTimer::close(std::uint64_t now_ns) noexcept {
  if (closed_ns_ == 0) closed_ns_ = now_ns;
}

StallTimes StallTimer::until(std::uint64_t now_ns, bool all_held) const noexcept {
  const std::uint64_t end_ns = std::max(closed_ns_ == 0 ? now_ns : closed_ns_, since_ns_);
  StallTimes out = sums_;
  out.wall_ns = end_ns - began_ns_;
  const std::uint64_t open_ns = end_ns - since_ns_;
  if (!waiting_) out.consumer_ns += open_ns;
  if (waiting_) (all_held ? out.no_slot_ns : out.staging_ns) += open_ns;
  return out;
}

}  // namespace fairlap::feed
