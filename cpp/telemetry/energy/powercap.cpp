#include "telemetry/energy/powercap.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace fairlap::telemetry {
namespace {

constexpr double kJoulesPerMicrojoule = 1e-6;

std::vector<std::filesystem::path> zones_of(const std::string& folder) {
  std::vector<std::filesystem::path> zones;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
    std::error_code missing;
    if (std::filesystem::exists(entry.path() / "energy_uj", missing)) zones.push_back(entry.path());
  }
  std::sort(zones.begin(), zones.end());
  return zones;
}

std::string name_of(const std::filesystem::path& zone) {
  KeptFile file((zone / "name").string());
  std::string_view name = file.read();
  name = name.substr(0, name.find('\n'));
  return zone.filename().string() + " " + (name.empty() ? "unnamed" : std::string(name));
}

}  // namespace

Powercap::Powercap(const std::string& root) : Source("powercap") {
  const std::string folder = root + "/sys/class/powercap";
  for (const std::filesystem::path& zone : zones_of(folder)) {
    KeptFile energy((zone / "energy_uj").string());
    KeptFile range((zone / "max_energy_range_uj").string());
    // Fast: a region's bounds are found by the counter's steps, and a file costs microseconds.
    Field field{.name = name_of(zone) + " energy_j",
                .kind = FieldKind::counter,
                .lane = Lane::fast,
                .absent_because = energy.reason()};
    double most_uj = 0.0;
    double unused = 0.0;
    if (energy.error() == EACCES || energy.error() == EPERM) {
      field.absent_because = energy.path() +
                             " may be read by root only (since Linux 5.10); run as root, or let "
                             "root make it readable: chmod a+r " +
                             energy.path();
    } else if (field.present() && !leading_number(energy.read(), unused)) {
      field.absent_because = energy.path() + " does not hold a number";
    } else if (field.present() && !(leading_number(range.read(), most_uj) && most_uj > 0.0)) {
      field.absent_because = "the limit of its counter is unknown: " +
                             (range.error() != 0 ? range.reason() : range.path() + " does not hold a number");
    }
    field.wraps_at =
        (most_uj + 1.0) * kJoulesPerMicrojoule;  // the range is the highest value, and 0 follows it
    add(std::move(field));
    files_.push_back(std::move(energy));
  }
  conclude();
  if (fields().empty()) {
    be_absent("no zone with an energy counter under " + folder +
              ": the processor has none, or it is hidden, as in virtual machines and most containers");
  }
}

void Powercap::read(Lane lane, Recorder& recorder) noexcept {
  if (lane != Lane::fast) return;
  for (std::uint32_t i = 0; i < files_.size(); ++i) {
    if (!fields()[i].present()) continue;
    std::string_view text;
    const Moment when = recorder.timed([&] { text = files_[i].read(); });
    double microjoules = 0.0;
    if (leading_number(text, microjoules))
      recorder.put(when, i, microjoules * kJoulesPerMicrojoule);
    else
      recorder.put_failed(when, i, files_[i].error() != 0 ? files_[i].error() : ENODATA);
  }
}

}  // namespace fairlap::telemetry
