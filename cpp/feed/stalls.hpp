#pragma once

#include <cstdint>

#include "feed/slots.hpp"

namespace fairlap::feed {

// Where the consumer's time went, from the feeder's making to now or to its closing. The parts add up
// to the wall time: the consumer is either at its own work or waiting in next(), for one of four causes.
struct StallTimes {
  std::uint64_t wall_ns = 0;
  std::uint64_t consumer_ns = 0;  // at its own work; the feeder was not waited for
  std::uint64_t source_ns = 0;    // waited while samples were read
  std::uint64_t staging_ns = 0;   // waited while samples were copied and converted, or for a thread to do so
  std::uint64_t link_ns = 0;      // waited while a copy to the device held up the slot
  std::uint64_t no_slot_ns = 0;   // waited because the consumer, or its work on the device, held every slot
  bool has_link = false;          // to a device; without one link_ns is meaningless
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
};

// Keeps the stalls. One consumer; its calls do not overlap.
class StallTimer {
 public:
  explicit StallTimer(std::uint64_t now_ns) noexcept : began_ns_(now_ns), since_ns_(now_ns) {}

  void wait_begins(std::uint64_t now_ns) noexcept;
  // The wait brought a batch whose slot had these times.
  void wait_ends(std::uint64_t now_ns, const SlotTimes& times, std::uint64_t samples,
                 std::uint64_t bytes) noexcept;
  // The wait brought nothing: the end, a stop, or no patience left.
  void wait_ends_empty(std::uint64_t now_ns, bool all_held) noexcept;
  void close(std::uint64_t now_ns) noexcept;  // what comes later is not counted

  [[nodiscard]] StallTimes until(std::uint64_t now_ns, bool all_held) const noexcept;

 private:
  StallTimes sums_;
  std::uint64_t began_ns_;
  std::uint64_t since_ns_;  // when the present stretch of waiting or of the consumer's work began
  std::uint64_t closed_ns_ = 0;
  bool waiting_ = false;
};

}  // namespace fairlap::feed
