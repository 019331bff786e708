#pragma once

#include <cstdint>
#include <vector>

namespace fairlap::fakes {

// Power over time, from points to which it jumps or runs in a straight line. Before the first point it has
// the first point's value, after the last the last one's.
class Waveform {
 public:
  void set_constant(double milliwatts);
  void add_point(std::int64_t time_ns, double milliwatts, bool straight_line);

  [[nodiscard]] double at(std::int64_t time_ns) const;
  [[nodiscard]] double energy_mj(std::int64_t from_ns, std::int64_t to_ns) const;

  // The mean over [to - window, to]; the value itself when the window is empty.
  [[nodiscard]] double mean(std::int64_t to_ns, std::int64_t window_ns) const;

 private:
  struct Point {
    std::int64_t time_ns;
    double milliwatts;
    bool straight_line;
  };
  std::vector<Point> points_{{0, 0.0, false}};
};

}  // namespace fairlap::fakes
