#include "clock/floor.hpp"

#include <algorithm>

#include "clock/monotonic_raw.hpp"
#include "clock/timestamp_counter.hpp"

namespace fairlap::clock {
namespace {

constexpr std::size_t kStamps = 20'000;
constexpr std::size_t kRare = 5;  // a reading seen less often is an interrupt, not a step
constexpr std::size_t kLongestIdle = 512;
constexpr std::size_t kStepsWanted = 32;  // the shortest readings are dense, the long ones sparse

// Work of slowly growing length, so that readings fall on many different steps.
void idle_for(std::size_t rounds) {
  for (std::size_t round = 0; round < rounds; ++round) asm volatile("" ::: "memory");
}

// As the measured loop does: the stamp that ends one reading begins the next, and each is kept.
template <class Clock, class Between>
std::vector<std::uint64_t> sorted_readings(const Between& between) {
  std::vector<std::uint64_t> readings(kStamps);
  std::uint64_t last = Clock::start();
  for (std::size_t i = 0; i < kStamps; ++i) {
    between(i);
    const std::uint64_t now = Clock::start();
    readings[i] = now - last;
    last = now;
  }
  std::sort(readings.begin(), readings.end());
  return readings;
}

// The best of several rounds: a neighbour on a shared machine can only add.
template <class Clock>
double overhead_ns() {
  constexpr int kRounds = 9;
  constexpr std::size_t kStampsInARound = kStamps / 10;
  double best = 0.0;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t begin_ns = MonotonicRaw::now_ns();
    for (std::size_t i = 0; i < kStampsInARound; ++i) Clock::start();
    const double each =
        static_cast<double>(MonotonicRaw::now_ns() - begin_ns) / static_cast<double>(kStampsInARound);
    if (round == 0 || each < best) best = each;
  }
  return best;
}

template <class Clock>
Floor measure(double ns_per_tick) {
  const auto nothing = [](std::size_t) {};
  sorted_readings<Clock>(nothing);  // warm caches and branch predictors
  const auto around_nothing = sorted_readings<Clock>(nothing);
  const auto around_idling = sorted_readings<Clock>([](std::size_t i) { idle_for(i % kLongestIdle); });
  return {quantum_of(around_idling) * ns_per_tick, overhead_ns<Clock>(),
          midmean_of(around_nothing) * ns_per_tick};
}

}  // namespace

double quantum_of(const std::vector<std::uint64_t>& sorted) {
  double cluster_sum = 0.0;
  double cluster_size = 0.0;
  double previous_centre = -1.0;
  std::uint64_t last = 0;
  std::vector<double> gaps;
  const auto close_cluster = [&] {
    if (cluster_size == 0.0) return;
    const double centre = cluster_sum / cluster_size;
    if (previous_centre >= 0.0) gaps.push_back(centre - previous_centre);
    previous_centre = centre;
    cluster_sum = cluster_size = 0.0;
  };
  for (std::size_t i = 0; i < sorted.size() && gaps.size() < kStepsWanted;) {
    std::size_t next = i;
    while (next < sorted.size() && sorted[next] == sorted[i]) ++next;
    if (next - i >= kRare) {
      if (cluster_size > 0.0 && sorted[i] - last > 1) close_cluster();
      cluster_sum += static_cast<double>(sorted[i]);
      cluster_size += 1.0;
      last = sorted[i];
    }
    i = next;
  }
  close_cluster();
  if (gaps.empty()) return 1.0;  // every value in a row was seen: the step is the tick itself
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle;
}

double midmean_of(const std::vector<std::uint64_t>& sorted) {
  const std::size_t low = sorted.size() / 4;
  const std::size_t high = sorted.size() - low;
  double sum = 0.0;
  for (std::size_t i = low; i < high; ++i) sum += static_cast<double>(sorted[i]);
  return high > low ? sum / static_cast<double>(high - low) : 0.0;
}

Floor measure_floor(Source source, double ns_per_tick) {
  return source == Source::timestamp_counter ? measure<TimestampCounter>(ns_per_tick)
                                             : measure<MonotonicRaw>(ns_per_tick);
}

}  // namespace fairlap::clock
