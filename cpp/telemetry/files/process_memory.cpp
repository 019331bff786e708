#include "telemetry/files/process_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "telemetry/files/descendants.hpp"

namespace fairlap::telemetry {
namespace {

constexpr double kBytesPerKilobyte = 1024.0;  // what /proc calls kB
// By number of field. The first two come from statm, which costs a fraction of what status does.
constexpr std::uint32_t kResident = 0;
constexpr std::uint32_t kAnonymous = 1;
constexpr std::uint32_t kFile = 2;
constexpr std::uint32_t kShared = 3;
constexpr std::uint32_t kChildren = 4;
constexpr std::uint32_t kChildCount = 8;
constexpr std::array kNames{"rss_bytes", "rss_anonymous_bytes", "rss_file_bytes", "rss_shared_bytes"};

// statm: size resident shared ..., in pages; shared is file-backed and shared memory together (proc(5)).
struct Pages {
  double resident = 0.0;
  double shared = 0.0;
};

bool parse_pages(std::string_view text, Pages& pages) noexcept {
  const std::size_t first = text.find(' ');
  if (first == std::string_view::npos) return false;
  const std::size_t second = text.find(' ', first + 1);
  return second != std::string_view::npos && leading_number(text.substr(first), pages.resident) &&
         leading_number(text.substr(second), pages.shared);
}

// False when the process has ended.
bool status_of(const char* proc, int pid, char* buffer, std::size_t size, std::string_view& text) noexcept {
  char path[512];
  std::snprintf(path, sizeof path, "%s/%d/status", proc, pid);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t length = ::read(file, buffer, size);
  ::close(file);
  if (length <= 0) return false;
  text = {buffer, static_cast<std::size_t>(length)};
  return true;
}

}  // namespace

ProcessMemory::ProcessMemory(const std::string& root)
    : Source("process_memory"),
      proc_(root + "/proc"),
      statm_(proc_ + "/self/statm"),
      status_(proc_ + "/self/status"),
      bytes_per_page_(static_cast<double>(sysconf(_SC_PAGESIZE))) {
  Pages pages;
  std::string no_pages = statm_.reason();
  if (no_pages.empty() && !parse_pages(statm_.read(), pages)) {
    no_pages = statm_.path() + " does not hold numbers of pages";
  }
  for (const std::uint32_t i : {kResident, kAnonymous}) {
    add({.name = kNames[i], .lane = Lane::slow, .absent_because = no_pages});
  }
  const auto absent_by_status = [this](std::size_t kind) {
    double unused = 0.0;
    if (status_.error() != 0) return status_.reason();
    if (number_after(status_.read(), kKeys[kind], unused)) return std::string();
    return status_.path() + " has no line " + kKeys[kind] + " (Linux 4.5 or later has)";
  };
  for (const std::uint32_t i : {kFile, kShared}) {
    add({.name = kNames[i], .lane = Lane::rare, .absent_because = absent_by_status(i)});
  }
  const std::string unlisted =
      lists_children(proc_.c_str()) ? "" : "this kernel lists no children under " + proc_ + "/self/task";
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    std::string reason = absent_by_status(i);
    if (reason.empty()) reason = unlisted;
    add({.name = std::string("children_") + kNames[i], .lane = Lane::rare, .absent_because = reason});
  }
  add({.name = "children_count", .lane = Lane::rare, .absent_because = fields()[kChildren].absent_because});
  conclude();
}

void ProcessMemory::read(Lane lane, Recorder& recorder) noexcept {
  if (lane == Lane::slow) read_pages(recorder);
  if (lane != Lane::rare) return;
  read_kinds(recorder);
  if (fields()[kChildCount].present()) read_descendants(recorder);
}

void ProcessMemory::read_pages(Recorder& recorder) noexcept {
  if (!fields()[kResident].present()) return;
  std::string_view text;
  const Moment when = recorder.timed([&] { text = statm_.read(); });
  Pages pages;
  if (parse_pages(text, pages)) {
    recorder.put(when, kResident, pages.resident * bytes_per_page_);
    recorder.put(when, kAnonymous, (pages.resident - pages.shared) * bytes_per_page_);
    return;
  }
  const int code = statm_.error() != 0 ? statm_.error() : ENODATA;
  recorder.put_failed(when, kResident, code);
  recorder.put_failed(when, kAnonymous, code);
}

void ProcessMemory::read_kinds(Recorder& recorder) noexcept {
  if (!fields()[kFile].present() && !fields()[kShared].present()) return;
  std::string_view text;
  const Moment when = recorder.timed([&] { text = status_.read(); });
  for (const std::uint32_t i : {kFile, kShared}) {
    if (!fields()[i].present()) continue;
    double kilobytes = 0.0;
    if (number_after(text, kKeys[i], kilobytes)) {
      recorder.put(when, i, kilobytes * kBytesPerKilobyte);
    } else {
      recorder.put_failed(when, i, status_.error() != 0 ? status_.error() : ENODATA);
    }
  }
}

void ProcessMemory::read_descendants(Recorder& recorder) noexcept {
  Descendants found;
  std::array<double, kKeys.size()> kilobytes{};
  int alive = 0;
  const Moment when = recorder.timed([&] {
    find_descendants(proc_.c_str(), "self", found);
    for (std::size_t k = 0; k < found.count; ++k) {
      char buffer[4096];
      std::string_view text;
      if (!status_of(proc_.c_str(), found.pids[k], buffer, sizeof buffer, text)) continue;
      ++alive;
      for (std::size_t i = 0; i < kKeys.size(); ++i) {
        double more = 0.0;
        if (number_after(text, kKeys[i], more)) kilobytes[i] += more;  // a zombie has no such line
      }
    }
  });
  for (std::uint32_t i = 0; i < kKeys.size(); ++i) {
    if (!fields()[kChildren + i].present()) continue;
    // A sum that leaves some out would be too small without saying so.
    if (found.complete)
      recorder.put(when, kChildren + i, kilobytes[i] * kBytesPerKilobyte);
    else
      recorder.put_failed(when, kChildren + i, EOVERFLOW);
  }
  if (found.complete)
    recorder.put(when, kChildCount, alive);
  else
    recorder.put_failed(when, kChildCount, EOVERFLOW);
}

}  // namespace fairlap::telemetry
