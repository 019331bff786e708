#include "telemetry/energy/repeated_energy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "telemetry/energy/counter_steps.hpp"

namespace fairlap::telemetry {
namespace {

constexpr double kFewestSeconds = 5.0;
constexpr std::size_t kFewestTrials = 2;

// Student's t at 97.5 %, by trials less one; more trials are judged as eleven, which is a little too wide.
double student(std::size_t freedom) {
  constexpr std::array kQuantiles{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  return kQuantiles[std::min(freedom, kQuantiles.size()) - 1];
}

struct OfTrials {
  std::vector<double> joules;  // of one repeat, by trial
  double alignment_share = 0.0;
  double disagreement_share = 0.0;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double spread_of(const std::vector<double>& values, double mean) {
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto freedom = values.size() - 1;
  const double deviation = std::sqrt(squares / static_cast<double>(freedom));
  return student(freedom) * deviation / std::sqrt(static_cast<double>(values.size())) / mean;
}

}  // namespace

TickedPower power_between_ticks(std::span<const Reading> counter, const Region& region, double wraps_at_j) {
  TickedPower power;
  Usable known = usable(counter, region);
  if (known.problem.empty() && !unwrap(known.points, wraps_at_j)) {
    known.problem = "the counter went backwards: the driver was reloaded";
  }
  if (!known.problem.empty()) {
    power.unresolved_because = known.problem;
    return power;
  }
  std::vector<Step> inside = steps_of(known.points);
  std::erase_if(inside, [&](const Step& step) {
    return step.after_ns < region.begin_ns || step.seen_ns > region.end_ns;
  });
  if (inside.size() < 2) {
    power.unresolved_because = "the counter ticked fewer than twice inside the region";
    return power;
  }
  const Step& first = inside.front();
  const Step& last = inside.back();
  power.ticks = {first.middle_ns(), last.middle_ns()};
  const double late_s =
      static_cast<double>((first.seen_ns - first.after_ns) + (last.seen_ns - last.after_ns)) / 2.0 * 1e-9;
  power.watts = (last.value - first.value) / power.ticks.seconds();
  // Of 1 / (T - late), the wider side.
  power.uncertainty_share = late_s < power.ticks.seconds() ? late_s / (power.ticks.seconds() - late_s)
                                                           : std::numeric_limits<double>::infinity();
  return power;
}

RepeatedEnergy repeated_energy(std::span<const Trial> trials, std::span<const Reading> counter,
                               double wraps_at_j, std::span<const Reading> power, const PowerSensor& sensor) {
  RepeatedEnergy energy;
  energy.gain_share = sensor.gain_share;
  OfTrials of;
  for (const Trial& trial : trials) {
    energy.seconds += trial.region.seconds();
    const TickedPower ticked = power_between_ticks(counter, trial.region, wraps_at_j);
    if (trial.repeats == 0) energy.unresolved_because = "a trial repeated nothing";
    if (!ticked.unresolved_because.empty()) energy.unresolved_because = ticked.unresolved_because;
    if (!energy.resolved()) return energy;
    of.joules.push_back(ticked.watts * trial.region.seconds() / static_cast<double>(trial.repeats));
    of.alignment_share = std::max(of.alignment_share, ticked.uncertainty_share);
    const RegionEnergy integral = energy_of_power(power, ticked.ticks, sensor);
    const double counted_j = ticked.watts * ticked.ticks.seconds();
    // NaN stays NaN: nothing to hold the counter against.
    const double difference = std::abs(counted_j - integral.joules) / counted_j;
    of.disagreement_share = std::isnan(difference) ? difference : std::max(of.disagreement_share, difference);
  }
  if (energy.seconds < kFewestSeconds) {
    energy.unresolved_because = "the work was repeated for less than 5 s";
  } else if (trials.size() < kFewestTrials) {
    energy.unresolved_because = "one trial does not show how trials differ";
  }
  if (!energy.resolved()) return energy;
  energy.joules = mean_of(of.joules);
  energy.alignment_share = of.alignment_share;
  energy.spread_share = spread_of(of.joules, energy.joules);
  energy.disagreement_share = of.disagreement_share;
  const double disagreement = std::isnan(of.disagreement_share) ? 0.0 : of.disagreement_share;
  // The sum, not the root of squares: the parts are bounds of different kinds, and may have a common cause.
  const double share = energy.alignment_share + energy.spread_share + disagreement + energy.gain_share;
  energy.low_j = energy.joules * std::max(0.0, 1.0 - share);
  energy.high_j = energy.joules * (1.0 + share);
  return energy;
}

}  // namespace fairlap::telemetry
