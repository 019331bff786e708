#pragma once

#include <limits>
#include <span>
#include <string>

#include "telemetry/energy/energy.hpp"

namespace fairlap::telemetry {

// The same work, done so often in a row, without a pause.
struct Trial {
  Region region;
  std::size_t repeats = 0;
};

// Energy of one repeat, with all that is known of how wrong it may be, each as a share of the value.
struct RepeatedEnergy {
  double joules = std::numeric_limits<double>::quiet_NaN();
  double low_j = std::numeric_limits<double>::quiet_NaN();
  double high_j = std::numeric_limits<double>::quiet_NaN();
  double alignment_share = std::numeric_limits<double>::quiet_NaN();     // when ticks were seen
  double spread_share = std::numeric_limits<double>::quiet_NaN();        // 95 % of the mean over trials
  double disagreement_share = std::numeric_limits<double>::quiet_NaN();  // counter against integral
  double gain_share = 0.0;
  double seconds = 0.0;            // of all trials together
  std::string unresolved_because;  // empty: resolved

  [[nodiscard]] bool resolved() const noexcept { return unresolved_because.empty(); }
};

// Mean power between the first and the last tick of the counter inside a region.
// The energy between two ticks is exact; what is uncertain is when they came.
struct TickedPower {
  double watts = std::numeric_limits<double>::quiet_NaN();
  double uncertainty_share = std::numeric_limits<double>::quiet_NaN();
  Region ticks;
  std::string unresolved_because;
};
TickedPower power_between_ticks(std::span<const Reading> counter, const Region& region, double wraps_at_j);

// At least five seconds of work and two trials, or unresolved: a shorter one shows the sensor rather than
// the work. `power` may be empty, where there is none to hold the counter against.
RepeatedEnergy repeated_energy(std::span<const Trial> trials, std::span<const Reading> counter,
                               double wraps_at_j, std::span<const Reading> power, const PowerSensor& sensor);

}  // namespace fairlap::telemetry
