#include "telemetry/files/steal.hpp"

#include <unistd.h>

#include <cerrno>

namespace fairlap::telemetry {
namespace {

constexpr int kStealColumn = 8;  // cpu user nice system idle iowait irq softirq steal (proc_stat(5))

bool stolen_ticks(std::string_view text, double& ticks) noexcept {
  const std::string_view line = text.substr(0, text.find('\n'));
  if (!line.starts_with("cpu ")) return false;
  std::size_t at = 0;
  for (int column = 0; column < kStealColumn; ++column) {
    at = line.find(' ', at);
    if (at == std::string_view::npos) return false;
    at = line.find_first_not_of(' ', at);
    if (at == std::string_view::npos) return false;
  }
  return leading_number(line.substr(at), ticks);
}

}  // namespace

Steal::Steal(const std::string& root)
    : Source("steal"),
      stat_(root + "/proc/stat"),
      seconds_per_tick_(1.0 / static_cast<double>(sysconf(_SC_CLK_TCK))) {
  Field field{
      .name = "stolen_s", .kind = FieldKind::counter, .lane = Lane::rare, .absent_because = stat_.reason()};
  double unused = 0.0;
  if (field.present() && !stolen_ticks(stat_.read(), unused)) {
    field.absent_because = stat_.path() + " has no column for stolen time";
  }
  add(std::move(field));
  conclude();
}

void Steal::read(Lane lane, Recorder& recorder) noexcept {
  if (lane != Lane::rare || !present()) return;
  std::string_view text;
  const Moment when = recorder.timed([&] { text = stat_.read(); });
  double ticks = 0.0;
  if (stolen_ticks(text, ticks))
    recorder.put(when, 0, ticks * seconds_per_tick_);
  else
    recorder.put_failed(when, 0, stat_.error() != 0 ? stat_.error() : ENODATA);
}

}  // namespace fairlap::telemetry
