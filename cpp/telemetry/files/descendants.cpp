#include "telemetry/files/descendants.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

namespace fairlap::telemetry {
namespace {

constexpr std::size_t kLongestPath = 512;

// A list may be longer than the buffer, so a number may be cut at its end and is put together again.
void read_children(const char* path, Descendants& found) noexcept {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;  // the thread has ended meanwhile, and its children went to another
  int pid = 0;
  bool inside = false;
  char buffer[1024];
  const auto finish = [&] {
    if (inside && found.count < found.pids.size())
      found.pids[found.count++] = pid;
    else if (inside)
      found.complete = false;
    inside = false;
    pid = 0;
  };
  for (ssize_t length = 0; (length = ::read(file, buffer, sizeof buffer)) > 0;) {
    for (const char c : std::string_view(buffer, static_cast<std::size_t>(length))) {
      if (c >= '0' && c <= '9') {
        pid = pid * 10 + (c - '0');
        inside = true;
      } else {
        finish();
      }
    }
  }
  finish();
  ::close(file);
}

#if defined(__linux__)
// As the kernel gives it; opendir would allocate.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};

template <class Visit>
bool for_each_name(const char* folder, Visit visit) noexcept {
  const int directory = ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  alignas(DirectoryEntry) char buffer[2048];
  long length = 0;
  while ((length = ::syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0) {
    for (long at = 0; at < length;) {
      const char* const entry = buffer + at;
      unsigned short step = 0;
      std::memcpy(&step, entry + offsetof(DirectoryEntry, length), sizeof step);
      visit(entry + offsetof(DirectoryEntry, name));
      at += step;
    }
  }
  ::close(directory);
  return length == 0;
}
#else
template <class Visit>
bool for_each_name(const char*, Visit) noexcept {
  return false;
}
#endif

// Calls visit with the path of each thread's list.
template <class Visit>
bool for_each_list(const char* proc, const char* process, Visit visit) noexcept {
  char folder[kLongestPath];
  std::snprintf(folder, sizeof folder, "%s/%s/task", proc, process);
  return for_each_name(folder, [&](const char* thread) {
    char path[2 * kLongestPath];
    const bool is_number = *thread >= '0' && *thread <= '9';
    if (is_number && std::snprintf(path, sizeof path, "%s/%s/children", folder, thread) > 0) visit(path);
  });
}

bool children_of(const char* proc, const char* process, Descendants& found) noexcept {
  return for_each_list(proc, process, [&](const char* path) { read_children(path, found); });
}

}  // namespace

void find_descendants(const char* proc, const char* process, Descendants& found) noexcept {
  found.count = 0;
  found.complete = true;
  if (!children_of(proc, process, found)) found.complete = false;
  // Each one found is asked in turn; one that ended meanwhile has no folder any more, which is no failure.
  for (std::size_t next = 0; next < found.count; ++next) {
    char pid[16] = {};
    std::to_chars(pid, pid + sizeof pid - 1, found.pids[next]);
    children_of(proc, pid, found);
  }
}

bool lists_children(const char* proc) noexcept {
  bool listed = false;
  for_each_list(proc, "self", [&](const char* path) { listed = listed || ::access(path, R_OK) == 0; });
  return listed;
}

}  // namespace fairlap::telemetry
