#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "telemetry/sampling/reading.hpp"
#include "telemetry/sampling/source.hpp"

namespace fairlap::telemetry {

// A length of time that was observed, or why it could not be; NaN then, never 0.
struct ObservedTime {
  double seconds = std::numeric_limits<double>::quiet_NaN();
  double resolution_s = 0.0;  // how far apart the looks were
  std::string unknown_because;

  [[nodiscard]] bool known() const noexcept { return unknown_because.empty(); }
};

// What one field costs to read and how often its source has something new, as found on this machine.
struct FieldCalibration {
  std::uint32_t source = 0;
  std::uint32_t field = 0;
  std::size_t calls = 0;                                            // that had an answer
  double call_ns = std::numeric_limits<double>::quiet_NaN();        // median
  double worst_call_ns = std::numeric_limits<double>::quiet_NaN();  // the slowest one
  ObservedTime period;                                              // from one publication to the next
  ObservedTime window;  // over which a published value is the average
};

// From readings of one field, much closer together than what is published. A publication shows by a new
// value; the period is known only when values changed often enough to distinguish it from chance.
ObservedTime publication_period(std::span<const Reading> readings);

// The length of the average that makes `published` out of `truth`, which is either another field that sees
// the same faster, or a load that is known, in any unit. Unknown when the truth hardly moved, or when no
// average of it looks like what was published.
ObservedTime averaging_window(std::span<const Reading> published, std::span<const Reading> truth);

// Reads every field that is present, alone, over and over for so long, on the calling thread, while nothing
// else reads these sources. Windows are found for fields that average another field of the same source.
std::vector<FieldCalibration> calibrate(const std::vector<std::unique_ptr<Source>>& sources,
                                        const clock::Clock& on_clock, std::chrono::nanoseconds length);

// A quarter of the shortest publication period in the fast lane. `otherwise` where none was seen.
std::chrono::nanoseconds fast_period_for(const std::vector<std::unique_ptr<Source>>& sources,
                                         std::span<const FieldCalibration> found,
                                         std::chrono::nanoseconds otherwise);

}  // namespace fairlap::telemetry
