#include "fakes/nvml/waveform.hpp"

#include <algorithm>

namespace fairlap::fakes {

void Waveform::set_constant(double milliwatts) { points_ = {{0, milliwatts, false}}; }

void Waveform::add_point(std::int64_t time_ns, double milliwatts, bool straight_line) {
  points_.push_back({time_ns, milliwatts, straight_line});
}

double Waveform::at(std::int64_t time_ns) const {
  const auto later = std::upper_bound(points_.begin(), points_.end(), time_ns,
                                      [](std::int64_t t, const Point& point) { return t < point.time_ns; });
  if (later == points_.begin()) return points_.front().milliwatts;
  const Point& before = *(later - 1);
  if (later == points_.end() || !later->straight_line) return before.milliwatts;
  const double along =
      static_cast<double>(time_ns - before.time_ns) / static_cast<double>(later->time_ns - before.time_ns);
  return before.milliwatts + along * (later->milliwatts - before.milliwatts);
}

double Waveform::energy_mj(std::int64_t from_ns, std::int64_t to_ns) const {
  // Between two neighbouring points power is a straight line, so its value in the middle is its mean.
  double sum = 0.0;
  const auto add = [&](std::int64_t begin_ns, std::int64_t end_ns) {
    begin_ns = std::max(begin_ns, from_ns);
    end_ns = std::min(end_ns, to_ns);
    if (begin_ns >= end_ns) return;
    // The end belongs to the next stretch when power jumps there; the limit from the left follows from the
    // line.
    const double first = at(begin_ns);
    const double middle = at(begin_ns + (end_ns - begin_ns) / 2);
    const double half_ns = static_cast<double>((end_ns - begin_ns) / 2);
    const double slope = half_ns > 0.0 ? (middle - first) / half_ns : 0.0;
    const double span_ns = static_cast<double>(end_ns - begin_ns);
    sum += (first + slope * span_ns / 2.0) * span_ns;
  };
  add(from_ns, points_.front().time_ns);
  for (std::size_t i = 0; i < points_.size(); ++i) {
    add(points_[i].time_ns, i + 1 < points_.size() ? points_[i + 1].time_ns : to_ns);
  }
  return sum / 1e9;  // milliwatts times nanoseconds
}

double Waveform::mean(std::int64_t to_ns, std::int64_t window_ns) const {
  if (window_ns <= 0) return at(to_ns);
  return energy_mj(to_ns - window_ns, to_ns) * 1e9 / static_cast<double>(window_ns);
}

}  // namespace fairlap::fakes
