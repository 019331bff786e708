#include "telemetry/files/control_group.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <system_error>

namespace fairlap::telemetry {
namespace {

constexpr double kPerMicrosecond = 1e-6;
constexpr double kPerNanosecond = 1e-9;

// One way in which a kernel reports a number. The controller of version 2 has no name.
struct Place {
  const char* controller;
  const char* file;
  const char* key;
  double scale;
};

bool names(const std::string& list, const std::string& controller) {
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    if (part == controller) return true;
  }
  return list.empty() && controller.empty();
}

// From this process's group up to the top. A container often sees its own group as the top while the path
// names it as the host does, so the top is looked at too.
std::vector<std::string> groups_upwards(const std::string& root, const std::string& controller) {
  std::ifstream memberships(root + "/proc/self/cgroup");
  for (std::string line; std::getline(memberships, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string list = line.substr(first + 1, second - first - 1);
    if (!names(list, controller)) continue;
    std::string top = root + "/sys/fs/cgroup";
    if (!controller.empty()) {
      std::error_code missing;
      const std::filesystem::path all(top);
      top = (all / (std::filesystem::exists(all / list, missing) ? list : controller)).string();
    }
    std::vector<std::string> folders;
    for (std::string path = line.substr(second + 1); path.size() > 1; path.resize(path.rfind('/'))) {
      folders.push_back(top + path);
    }
    folders.push_back(top);
    return folders;
  }
  return {};
}

}  // namespace

ControlGroup::ControlGroup(const std::string& root) : Source("control_group") {
  const auto find = [&](const char* name, FieldKind kind, std::initializer_list<Place> places) {
    Field field{.name = name, .kind = kind, .lane = Lane::rare, .absent_because = ""};
    for (const Place& place : places) {
      for (const std::string& folder : groups_upwards(root, place.controller)) {
        std::size_t number = 0;
        const std::string path = folder + "/" + place.file;
        while (number < files_.size() && files_[number].path() != path) ++number;
        if (number == files_.size()) files_.emplace_back(path);
        const std::string_view text = files_[number].read();
        double unused = 0.0;
        const std::string_view key = place.key;
        if (key.empty() ? leading_number(text, unused) : number_after(text, key, unused)) {
          numbers_.push_back({number, place.key, place.scale});
          add(std::move(field));
          return;
        }
        if (files_[number].error() != 0 && files_[number].error() != ENOENT) {
          field.absent_because = files_[number].reason();
        }
        if (number + 1 == files_.size()) files_.pop_back();
      }
    }
    if (field.present())
      field.absent_because = "no control group of this process under " + root + "/sys/fs/cgroup reports it";
    numbers_.push_back({0, "", 0.0});
    add(std::move(field));
  };
  find("memory_bytes", FieldKind::gauge,
       {{"", "memory.current", "", 1.0}, {"memory", "memory.usage_in_bytes", "", 1.0}});
  find("memory_peak_bytes", FieldKind::gauge,
       {{"", "memory.peak", "", 1.0}, {"memory", "memory.max_usage_in_bytes", "", 1.0}});
  find("cpu_s", FieldKind::counter,
       {{"", "cpu.stat", "usage_usec", kPerMicrosecond}, {"cpuacct", "cpuacct.usage", "", kPerNanosecond}});
  find("throttled_s", FieldKind::counter,
       {{"", "cpu.stat", "throttled_usec", kPerMicrosecond},
        {"cpu", "cpu.stat", "throttled_time", kPerNanosecond}});
  find("throttled_periods", FieldKind::counter,
       {{"", "cpu.stat", "nr_throttled", 1.0}, {"cpu", "cpu.stat", "nr_throttled", 1.0}});
  conclude();
}

void ControlGroup::read(Lane lane, Recorder& recorder) noexcept {
  if (lane != Lane::rare) return;
  for (std::size_t f = 0; f < files_.size(); ++f) {
    std::string_view text;
    const Moment when = recorder.timed([&] { text = files_[f].read(); });
    for (std::uint32_t i = 0; i < numbers_.size(); ++i) {
      const Number& found = numbers_[i];
      if (found.file != f || !fields()[i].present()) continue;
      double number = 0.0;
      if (found.key.empty() ? leading_number(text, number) : number_after(text, found.key, number)) {
        recorder.put(when, i, number * found.scale);
      } else {
        recorder.put_failed(when, i, files_[f].error() != 0 ? files_[f].error() : ENODATA);
      }
    }
  }
}

}  // namespace fairlap::telemetry
