#include "fakes/cuda/board.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iterator>

#include "fakes/cuda/lookup.hpp"

namespace fairlap::fakes {
namespace {

constexpr std::uint64_t kBoardBytes = std::uint64_t{1} << 30;
// Free in a process, and memory that the sanitizers allow.
constexpr std::uint64_t kPlace = std::uint64_t{0x7e9} << 36;
constexpr std::size_t kSlots = 256;

// A process may be stopped or killed at any time, so nothing here is locked: a slot is taken by writing an id
// where there is none, and an export counts once its own id is there, which is written last.
struct Exported {
  std::atomic<std::int32_t> taken_by;
  std::atomic<std::uint64_t> id;
  Export is;
};
struct Opened {
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint64_t> id;
};
struct Busy {
  std::atomic<std::int32_t> pid;
  std::atomic<bool> is_busy;
};

// All zeros at first, which is what an empty board is.
struct Board {
  std::atomic<std::uint64_t> blocks;
  std::atomic<std::uint64_t> exports_made;
  Exported exports[kSlots];
  Opened opened[kSlots];
  Busy busy[kSlots];
};
static_assert(sizeof(Board) <= kBlockBytes);

bool is_alive(std::int32_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

// By a process that lives. What others left is not kept.
bool is_in_use(const Board& board) {
  return std::any_of(std::begin(board.busy), std::end(board.busy),
                     [](const Busy& each) { return each.pid != 0 && is_alive(each.pid); });
}

Board* mapped_board() noexcept {
  const char* path = std::getenv("CUDA_FAKE_BOARD");
  if (path == nullptr || *path == '\0') return nullptr;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  const bool is_sized = ::ftruncate(file, static_cast<off_t>(kBoardBytes)) == 0;
  void* const there = reinterpret_cast<void*>(kPlace);
  void* const found = is_sized ? ::mmap(there, kBoardBytes, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0)
                               : MAP_FAILED;
  Board* const board = found == MAP_FAILED ? nullptr : static_cast<Board*>(found);
  if (board != nullptr && !is_in_use(*board)) {
    const bool is_empty =
        ::ftruncate(file, 0) == 0 && ::ftruncate(file, static_cast<off_t>(kBoardBytes)) == 0;
    if (!is_empty) std::abort();
  }
  ::close(file);
  return board;
}

// When the library is loaded: a sandboxed process cannot open the file later.
Board* const kBoard = mapped_board();

// Claims a slot for this process: a free one, or that of a process that has ended.
template <class Slot, class Pid>
Slot* taken(Slot (&slots)[kSlots], Pid&& pid_of) {
  for (Slot& each : slots) {
    std::int32_t before = pid_of(each).load();
    if (before != 0 && is_alive(before)) continue;
    if (pid_of(each).compare_exchange_strong(before, ::getpid())) return &each;
  }
  return nullptr;
}

Exported* export_of(std::uint64_t address) {
  for (Exported& each : kBoard->exports) {
    if (each.id != 0 && each.taken_by == ::getpid() && each.is.address == address) return &each;
  }
  return nullptr;
}

// The block that the last small allocation of this process went into, and how much of it is taken.
struct OpenBlock {
  std::int32_t pid = 0;
  std::uint64_t address = 0;
  std::uint64_t used = kBlockBytes;
};
OpenBlock open_block;

}  // namespace

bool has_board() { return kBoard != nullptr; }

std::optional<std::uint64_t> allocate_on_board(std::uint64_t bytes) {
  constexpr std::uint64_t kAligned = 512;
  if (open_block.pid != ::getpid()) open_block = OpenBlock{.pid = ::getpid()};
  const std::uint64_t aligned = (bytes + kAligned - 1) / kAligned * kAligned;
  if (bytes < kBlockBytes && aligned <= kBlockBytes - open_block.used) {
    const std::uint64_t address = open_block.address + open_block.used;
    open_block.used += aligned;
    return address;
  }
  const std::uint64_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
  const std::uint64_t first = 1 + kBoard->blocks.fetch_add(blocks);
  if ((first + blocks) * kBlockBytes > kBoardBytes) return std::nullopt;
  const std::uint64_t address = kPlace + first * kBlockBytes;
  if (bytes < kBlockBytes) open_block = {::getpid(), address, aligned};
  return address;
}

std::optional<Export> export_from_board(std::uint64_t address, std::uint64_t bytes) {
  if (const Exported* known = export_of(address)) return known->is;
  Exported* const made = taken(kBoard->exports, [](Exported& each) -> auto& { return each.taken_by; });
  if (made == nullptr) return std::nullopt;
  const std::uint64_t block = address / kBlockBytes * kBlockBytes;
  const std::uint64_t end = (address + bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  made->is = {++kBoard->exports_made, ::getpid(), block, end - block, address};
  made->id = made->is.id;
  return made->is;
}

std::optional<Export> exported_as(std::uint64_t id) {
  for (const Exported& each : kBoard->exports) {
    if (id != 0 && each.id == id && is_alive(each.taken_by)) return each.is;
  }
  return std::nullopt;
}

void forget_export(std::uint64_t address) {
  if (Exported* known = export_of(address)) {
    known->id = 0;
    known->taken_by = 0;
  }
}

void note_opened(std::uint64_t id) {
  if (Opened* const mine = taken(kBoard->opened, [](Opened& each) -> auto& { return each.pid; }))
    mine->id = id;
}

void note_closed(std::uint64_t id) {
  for (Opened& each : kBoard->opened) {
    if (each.pid != ::getpid() || each.id != id) continue;
    each.id = 0;
    each.pid = 0;
    return;
  }
}

bool is_opened_elsewhere(std::uint64_t address) {
  const Exported* known = export_of(address);
  if (known == nullptr) return false;
  for (const Opened& each : kBoard->opened) {
    if (each.id == known->id && each.pid != 0 && is_alive(each.pid)) return true;
  }
  return false;
}

void publish_work(World& w) {
  if (!has_board()) return;
  bool is_busy = false;
  for (const auto& [unused, context] : w.contexts) {
    for (const StreamPtr& each : streams_of(*context)) is_busy = is_busy || pending_count(w, *each) > 0;
  }
  static Busy* mine = nullptr;  // under the world's lock
  if (mine == nullptr || mine->pid != ::getpid()) {
    mine = taken(kBoard->busy, [](Busy& each) -> auto& { return each.pid; });
  }
  if (mine != nullptr) mine->is_busy = is_busy;
}

int busy_others() {
  if (!has_board()) return 0;
  int others = 0;
  for (const Busy& each : kBoard->busy) {
    if (each.is_busy && each.pid != 0 && each.pid != ::getpid() && is_alive(each.pid)) ++others;
  }
  return others;
}

}  // namespace fairlap::fakes
