#include "telemetry/files/pressure.hpp"

#include <array>
#include <cerrno>

namespace fairlap::telemetry {
namespace {

constexpr double kSecondsPerMicrosecond = 1e-6;

struct Line {
  std::size_t file;
  const char* key;
  const char* name;
};
constexpr std::array kFiles{"cpu", "memory", "io"};
// "full" of the processor is always 0 for the whole machine, so it is not read.
constexpr std::array kLines{Line{0, "some", "cpu_some_s"}, Line{1, "some", "memory_some_s"},
                            Line{1, "full", "memory_full_s"}, Line{2, "some", "io_some_s"},
                            Line{2, "full", "io_full_s"}};

bool total_of(std::string_view text, std::string_view key, double& microseconds) noexcept {
  std::size_t at = text.find(key);
  if (at == std::string_view::npos) return false;
  const std::string_view line = text.substr(at, text.find('\n', at) - at);
  constexpr std::string_view kTotal = " total";
  at = line.find(kTotal);
  return at != std::string_view::npos && leading_number(line.substr(at + kTotal.size()), microseconds);
}

}  // namespace

Pressure::Pressure(const std::string& root) : Source("pressure") {
  for (const char* file : kFiles) files_.emplace_back(root + "/proc/pressure/" + file);
  for (const Line& line : kLines) {
    KeptFile& file = files_[line.file];
    Field field{.name = line.name, .kind = FieldKind::counter, .lane = Lane::rare, .absent_because = ""};
    double unused = 0.0;
    if (file.error() != 0) {
      field.absent_because =
          file.reason() + " (pressure is reported by kernels built with PSI and started with psi=1)";
    } else if (!total_of(file.read(), line.key, unused)) {
      field.absent_because = file.path() + " has no total for '" + line.key + "'";
    }
    add(std::move(field));
  }
  conclude();
}

void Pressure::read(Lane lane, Recorder& recorder) noexcept {
  if (lane != Lane::rare) return;
  for (std::size_t f = 0; f < files_.size(); ++f) {
    std::string_view text;
    const Moment when = recorder.timed([&] { text = files_[f].read(); });
    for (std::uint32_t i = 0; i < kLines.size(); ++i) {
      if (kLines[i].file != f || !fields()[i].present()) continue;
      double microseconds = 0.0;
      if (total_of(text, kLines[i].key, microseconds))
        recorder.put(when, i, microseconds * kSecondsPerMicrosecond);
      else
        recorder.put_failed(when, i, files_[f].error() != 0 ? files_[f].error() : ENODATA);
    }
  }
}

}  // namespace fairlap::telemetry
