#include "telemetry/process_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "telemetry/descendants.hpp"

namespace fairlap::telemetry {
namespace {

constexpr double kBytesPerKilobyte = 1024.0;  // what /proc calls kB
constexpr std::uint32_t kOwn = 0;
constexpr std::uint32_t kChildren = 4;
constexpr std::uint32_t kChildCount = 8;

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
    : Source("process_memory"), proc_(root + "/proc"), status_(proc_ + "/self/status") {
  const std::string_view text = status_.read();
  for (const char* prefix : {"", "children_"}) {
    const bool children = *prefix != '\0';
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      constexpr std::array names{"rss_bytes", "rss_anonymous_bytes", "rss_file_bytes", "rss_shared_bytes"};
      Field field{std::string(prefix) + names[i], FieldKind::gauge, Lane::slow, 0.0, status_.reason()};
      double unused = 0.0;
      if (field.present() && !number_after(text, kKeys[i], unused)) {
        field.absent_because = status_.path() + " has no line " + kKeys[i] + " (Linux 4.5 or later has)";
      }
      if (field.present() && children && !lists_children(proc_.c_str())) {
        field.absent_because = "this kernel lists no children under " + proc_ + "/self/task";
      }
      add(std::move(field));
    }
  }
  add({"children_count", FieldKind::gauge, Lane::slow, 0.0, fields()[kChildren].absent_because});
  conclude();
}

void ProcessMemory::read(Lane lane, Recorder& recorder) noexcept {
  if (lane != Lane::slow) return;
  read_own(recorder);
  if (fields()[kChildCount].present()) read_descendants(recorder);
}

void ProcessMemory::read_own(Recorder& recorder) noexcept {
  std::string_view text;
  const Moment when = recorder.timed([&] { text = status_.read(); });
  for (std::uint32_t i = 0; i < kKeys.size(); ++i) {
    if (!fields()[kOwn + i].present()) continue;
    double kilobytes = 0.0;
    if (number_after(text, kKeys[i], kilobytes)) {
      recorder.put(when, kOwn + i, kilobytes * kBytesPerKilobyte);
    } else {
      recorder.put_failed(when, kOwn + i, status_.error() != 0 ? status_.error() : ENODATA);
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
