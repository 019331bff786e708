#include "telemetry/energy/perf_energy.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#if defined(__linux__)
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#endif

namespace fairlap::telemetry {
namespace {

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

template <class Number>
std::optional<Number> number_in(const std::string& text, int base = 10) {
  Number number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (problem != std::errc()) return std::nullopt;
  return number;
}

// "event=0x02": the only form that this kind of counter has.
std::optional<std::uint64_t> config_in(const std::string& text) {
  constexpr std::string_view kBegin = "event=0x";
  if (!text.starts_with(kBegin)) return std::nullopt;
  return number_in<std::uint64_t>(text.substr(kBegin.size()), 16);
}

// One core for each package, such as "0,28" or "0-1".
std::vector<int> cores_in(const std::string& mask) {
  std::vector<int> cores;
  std::istringstream parts(mask);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto first = number_in<int>(part);
    const std::size_t dash = part.find('-');
    const auto last = dash == std::string::npos ? first : number_in<int>(part.substr(dash + 1));
    if (!first || !last) return {};
    for (int core = *first; core <= *last; ++core) cores.push_back(core);
  }
  return cores;
}

// Names of events alone: next to each are files for its scale and unit.
std::vector<std::string> energy_events(const std::string& folder) {
  std::vector<std::string> events;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/events", unreadable)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("energy-") && name.find('.') == std::string::npos) events.push_back(name);
  }
  std::sort(events.begin(), events.end());
  return events;
}

std::string refusal(int error) {
  const std::string words = std::generic_category().message(error);
  if (error == EACCES || error == EPERM) {
    return "perf_event_open: " + words +
           "; run as root or with CAP_PERFMON, or let root set kernel.perf_event_paranoid to 0 or less";
  }
  return "perf_event_open: " + words;
}

}  // namespace

#if defined(__linux__)
int open_perf_counter(std::uint32_t type, std::uint64_t config, int core) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = config;
  const long file = syscall(SYS_perf_event_open, &attributes, -1, core, -1, PERF_FLAG_FD_CLOEXEC);
  return file < 0 ? -errno : static_cast<int>(file);
}
#else
int open_perf_counter(std::uint32_t, std::uint64_t, int) { return -ENOSYS; }
#endif

PerfEnergy::PerfEnergy(const NotNeeded& because) : Source("perf_energy") { be_absent(because.reason); }

PerfEnergy::PerfEnergy(const std::string& root, const OpenPerfCounter& open) : Source("perf_energy") {
  const std::string folder = root + "/sys/bus/event_source/devices/power";
  for (const std::string& event : energy_events(folder)) find_event(folder, event, open);
  conclude();
  if (fields().empty()) {
    be_absent("no energy event under " + folder +
              ": the kernel does not know this processor's counters, or hides them, as in virtual machines");
  }
}

PerfEnergy::~PerfEnergy() {
  for (const Counter& counter : counters_) {
    if (counter.file >= 0) ::close(counter.file);
  }
}

void PerfEnergy::find_event(const std::string& folder, const std::string& event,
                            const OpenPerfCounter& open) {
  const std::string path = folder + "/events/" + event;
  const auto type = number_in<std::uint32_t>(first_line(folder + "/type").value_or(""));
  const auto config = config_in(first_line(path).value_or(""));
  const std::string scale_text = first_line(path + ".scale").value_or("");
  const double scale = std::strtod(scale_text.c_str(), nullptr);
  std::vector<int> cores = cores_in(first_line(folder + "/cpumask").value_or("0"));
  std::string reason;
  if (!type || !config) reason = "sysfs does not give its number: see " + path + " and " + folder + "/type";
  if (first_line(path + ".unit") != "Joules") reason = path + ".unit is not Joules";
  if (!(scale > 0.0)) reason = path + ".scale does not hold a number";
  if (cores.empty()) {
    reason = folder + "/cpumask does not list cores";
    cores.push_back(0);
  }
  for (const int core : cores) {
    std::string why_not = reason;
    int file = -1;
    if (why_not.empty()) {
      file = open(type.value_or(0), config.value_or(0), core);
      if (file < 0) why_not = refusal(-file);
    }
    // Fast, as powercap's counters are. 64 bits of a fraction of a millijoule do not wrap.
    add({.name = event + " cpu" + std::to_string(core) + " energy_j",
         .kind = FieldKind::counter,
         .lane = Lane::fast,
         .absent_because = why_not});
    counters_.push_back({file, scale});
  }
}

void PerfEnergy::read(Lane lane, Recorder& recorder) noexcept {
  if (lane != Lane::fast) return;
  for (std::uint32_t i = 0; i < counters_.size(); ++i) {
    if (!fields()[i].present()) continue;
    std::uint64_t count = 0;
    int error = 0;
    const Moment when = recorder.timed([&] {
      const ssize_t length = ::read(counters_[i].file, &count, sizeof count);
      if (length != sizeof count) error = length < 0 ? errno : ENODATA;
    });
    if (error == 0)
      recorder.put(when, i, static_cast<double>(count) * counters_[i].joules_per_count);
    else
      recorder.put_failed(when, i, error);
  }
}

}  // namespace fairlap::telemetry
