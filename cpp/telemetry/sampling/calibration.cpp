#include "telemetry/sampling/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <thread>

namespace fairlap::telemetry {
namespace {

constexpr double kSecondsPerNs = 1e-9;
constexpr std::size_t kFewestChanges = 4;
constexpr double kSamePeriod = 1.5;  // a gap this much longer holds a publication that did not show
constexpr auto kLookEvery = std::chrono::milliseconds(1);

ObservedTime unknown(std::string reason) {
  ObservedTime time;
  time.unknown_because = std::move(reason);
  return time;
}

struct Point {
  double seconds;
  double value;
};

std::vector<Point> points_of(std::span<const Reading> readings) {
  std::vector<Point> points;
  for (const Reading& reading : readings) {
    if (reading.state != ReadingState::value) continue;
    points.push_back({static_cast<double>(reading.time_ns) * kSecondsPerNs, reading.value});
  }
  return points;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// When a new value was seen, in the middle between the looks around it.
std::vector<Point> changes_of(const std::vector<Point>& points) {
  std::vector<Point> changes;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].value == points[i - 1].value) continue;
    changes.push_back({(points[i - 1].seconds + points[i].seconds) / 2.0, points[i].value});
  }
  return changes;
}

// The truth's integral from its first moment on, where it is a straight line between points.
class Integral {
 public:
  explicit Integral(std::vector<Point> points) : points_(std::move(points)), until_(points_.size(), 0.0) {
    for (std::size_t i = 1; i < points_.size(); ++i) {
      until_[i] = until_[i - 1] + (points_[i].value + points_[i - 1].value) / 2.0 *
                                      (points_[i].seconds - points_[i - 1].seconds);
    }
  }

  [[nodiscard]] double begin() const { return points_.front().seconds; }
  [[nodiscard]] double end() const { return points_.back().seconds; }
  [[nodiscard]] double at(double seconds) const {
    const auto next = std::upper_bound(points_.begin(), points_.end(), seconds,
                                       [](double s, const Point& point) { return s < point.seconds; });
    if (next == points_.begin()) return 0.0;
    const Point& before = *(next - 1);
    const double whole = until_[static_cast<std::size_t>(next - points_.begin()) - 1];
    if (next == points_.end()) return whole;
    const double part = seconds - before.seconds;
    const double slope = (next->value - before.value) / (next->seconds - before.seconds);
    return whole + (before.value + slope * part / 2.0) * part;
  }
  [[nodiscard]] double mean(double to, double window) const { return (at(to) - at(to - window)) / window; }

 private:
  std::vector<Point> points_;
  std::vector<double> until_;
};

// How much of what was published is explained by averages of this length: the square of the correlation,
// which no unit and no offset can spoil.
double explained(const std::vector<Point>& published, const Integral& truth, double window, double from) {
  double n = 0.0;
  double sx = 0.0;
  double sy = 0.0;
  for (const Point& point : published) {
    if (point.seconds < from || point.seconds > truth.end()) continue;
    sx += truth.mean(point.seconds, window);
    sy += point.value;
    n += 1.0;
  }
  double xx = 0.0;
  double yy = 0.0;
  double xy = 0.0;
  for (const Point& point : published) {
    if (point.seconds < from || point.seconds > truth.end()) continue;
    const double x = truth.mean(point.seconds, window) - sx / n;
    const double y = point.value - sy / n;
    xx += x * x;
    yy += y * y;
    xy += x * y;
  }
  return xx > 0.0 && yy > 0.0 ? xy * xy / (xx * yy) : 0.0;
}

// Whether the field is the average of another one that is present: its name ends so.
bool averages_another(const Source& source, std::uint32_t field, std::uint32_t& other) {
  constexpr std::string_view kAverage = "_average_";
  std::string name = source.fields()[field].name;
  const std::size_t at = name.find(kAverage);
  if (at == std::string::npos) return false;
  name.replace(at, kAverage.size(), "_instant_");
  const auto found = std::find_if(source.fields().begin(), source.fields().end(),
                                  [&](const Field& each) { return each.name == name && each.present(); });
  other = static_cast<std::uint32_t>(found - source.fields().begin());
  return found != source.fields().end();
}

// All readings of one field while it is looked at alone.
struct Look {
  std::uint32_t source;
  std::uint32_t field;
  std::vector<Reading> readings;
};

std::vector<Look> everything_present(const std::vector<std::unique_ptr<Source>>& sources) {
  std::vector<Look> looks;
  for (std::uint32_t s = 0; s < sources.size(); ++s) {
    for (std::uint32_t f = 0; f < sources[s]->fields().size(); ++f) {
      if (sources[s]->present() && sources[s]->fields()[f].present()) looks.push_back({s, f, {}});
    }
  }
  return looks;
}

void look_around(const std::vector<std::unique_ptr<Source>>& sources, const clock::Clock& on_clock,
                 std::vector<Look>& looks) {
  Ring ring(4096);
  Recorder recorder(ring, on_clock);
  std::vector<Reading> taken(ring.capacity());
  for (Look& each : looks) {
    recorder.speak_for(each.source);
    sources[each.source]->read_alone(each.field, recorder);
    const std::size_t count = ring.take(taken);
    std::copy_if(taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(count),
                 std::back_inserter(each.readings),
                 [&](const Reading& reading) { return reading.field == each.field; });
  }
}

FieldCalibration judged(const std::vector<std::unique_ptr<Source>>& sources, const std::vector<Look>& looks,
                        const Look& own) {
  FieldCalibration found;
  found.source = own.source;
  found.field = own.field;
  std::vector<double> costs;
  for (const Reading& reading : own.readings) {
    if (reading.state == ReadingState::value) costs.push_back(static_cast<double>(reading.width_ns));
  }
  found.calls = costs.size();
  if (!costs.empty()) {
    found.worst_call_ns = *std::max_element(costs.begin(), costs.end());
    found.call_ns = median_of(std::move(costs));
  }
  found.period = publication_period(own.readings);
  std::uint32_t instant = 0;
  if (!averages_another(*sources[own.source], own.field, instant)) {
    found.window = unknown("no field of its source sees the same faster; a known load would show it");
    return found;
  }
  const auto truth = std::find_if(looks.begin(), looks.end(), [&](const Look& other) {
    return other.source == own.source && other.field == instant;
  });
  found.window = averaging_window(own.readings, truth->readings);
  return found;
}

}  // namespace

ObservedTime publication_period(std::span<const Reading> readings) {
  const std::vector<Point> points = points_of(readings);
  if (points.size() < 2) return unknown("it was read fewer than twice");
  std::vector<double> looks;
  for (std::size_t i = 1; i < points.size(); ++i) looks.push_back(points[i].seconds - points[i - 1].seconds);
  const double resolution_s = median_of(looks);
  const double length_s = points.back().seconds - points.front().seconds;
  const std::vector<Point> changes = changes_of(points);
  ObservedTime period;
  period.resolution_s = resolution_s;
  if (changes.size() < kFewestChanges) {
    period.unknown_because = "its value changed " + std::to_string(changes.size()) + " times in " +
                             std::to_string(static_cast<int>(std::lround(length_s * 1e3))) + " ms";
    return period;
  }
  std::vector<double> gaps;
  for (std::size_t i = 1; i < changes.size(); ++i)
    gaps.push_back(changes[i].seconds - changes[i - 1].seconds);
  const double shortest = *std::min_element(gaps.begin(), gaps.end());
  if (shortest < 2.0 * resolution_s) {
    period.unknown_because = "it is new at nearly every look";
    return period;
  }
  // A publication that repeats the value before does not show, and leaves a gap of two periods or more.
  std::vector<double> single = gaps;
  std::erase_if(single, [&](double gap) { return gap > kSamePeriod * shortest; });
  const double about = median_of(std::move(single));
  // A look may be late, and its change with it; over all of them, that evens out.
  double n = 0.0;
  double sn = 0.0;
  double st = 0.0;
  double snn = 0.0;
  double snt = 0.0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (i > 0) n += std::round(gaps[i - 1] / about);
    const double t = changes[i].seconds - changes.front().seconds;
    sn += n;
    st += t;
    snn += n * n;
    snt += n * t;
  }
  const auto count = static_cast<double>(changes.size());
  period.seconds = (count * snt - sn * st) / (count * snn - sn * sn);
  return period;
}

ObservedTime averaging_window(std::span<const Reading> published, std::span<const Reading> truth) {
  constexpr double kEnough = 0.9;
  constexpr double kAsGood = 0.97;
  constexpr double kElsewhere = 1.3;
  constexpr double kRatio = 1.03;  // from one length that is tried to the next
  const std::vector<Point> seen = points_of(published);
  std::vector<Point> real = points_of(truth);
  if (seen.size() < 8 || real.size() < 8) return unknown("there are too few readings");
  const std::vector<Point> changes = changes_of(seen);
  if (changes.size() < kFewestChanges) return unknown("what was published hardly changed");
  const double look = (real.back().seconds - real.front().seconds) / static_cast<double>(real.size() - 1);
  const Integral integral(std::move(real));
  // Half of what is known is kept to judge by, so no longer window can be found.
  const double longest = (integral.end() - integral.begin()) / 2.0;
  const double from = integral.begin() + longest;
  std::vector<Point> tried;  // length, and how much it explains
  double length = 2.0 * look;
  while (length < longest) {
    tried.push_back({length, explained(changes, integral, length, from)});
    length *= kRatio;
  }
  std::size_t best = 0;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    if (tried[i].value > tried[best].value) best = i;
  }
  if (tried.empty() || tried[best].value < kEnough) {
    return unknown("no average of what happened looks like what was published");
  }
  if (best + 1 == tried.size()) return unknown("it is longer than what was watched");
  // What repeats is explained as well by windows that are longer by its turns.
  for (std::size_t i = 1; i + 1 < tried.size(); ++i) {
    const bool peak = tried[i].value > tried[i - 1].value && tried[i].value > tried[i + 1].value;
    const double ratio = tried[i].seconds / tried[best].seconds;
    const bool elsewhere = ratio > kElsewhere || ratio * kElsewhere < 1.0;
    if (peak && elsewhere && tried[i].value > kAsGood * tried[best].value) {
      return unknown("what happened repeats itself, so that several windows look alike");
    }
  }
  ObservedTime window;
  window.seconds = tried[best].seconds;
  window.resolution_s = std::max(look, (kRatio - 1.0) * window.seconds);
  return window;
}

std::vector<FieldCalibration> calibrate(const std::vector<std::unique_ptr<Source>>& sources,
                                        const clock::Clock& on_clock, std::chrono::nanoseconds length) {
  std::vector<Look> looks = everything_present(sources);
  const auto begin = std::chrono::steady_clock::now();
  auto next = begin;
  while (!looks.empty()) {
    look_around(sources, on_clock, looks);
    next = std::max(next + kLookEvery, std::chrono::steady_clock::now());
    if (next >= begin + length) break;
    std::this_thread::sleep_until(next);
  }
  std::vector<FieldCalibration> found;
  found.reserve(looks.size());
  for (const Look& own : looks) found.push_back(judged(sources, looks, own));
  return found;
}

std::chrono::nanoseconds fast_period_for(const std::vector<std::unique_ptr<Source>>& sources,
                                         std::span<const FieldCalibration> found,
                                         std::chrono::nanoseconds otherwise) {
  constexpr double kQuarter = 0.25;
  constexpr double kShortestS = 1e-3;
  double shortest_s = std::numeric_limits<double>::infinity();
  for (const FieldCalibration& each : found) {
    const Field& field = sources.at(each.source)->fields().at(each.field);
    if (field.lane == Lane::fast && each.period.known()) {
      shortest_s = std::min(shortest_s, each.period.seconds);
    }
  }
  if (!std::isfinite(shortest_s)) return otherwise;
  return std::chrono::nanoseconds(std::llround(std::max(kShortestS, kQuarter * shortest_s) * 1e9));
}

}  // namespace fairlap::telemetry
