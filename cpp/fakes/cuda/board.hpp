#pragma once

#include <cstdint>
#include <optional>

#include "fakes/cuda/world.hpp"

// What several processes have in common when they use one device: its memory, and that it is busy. It is in
// the file that CUDA_FAKE_BOARD names, which is mapped when the library is loaded; without it a process has
// a device to itself. All of a board is mapped, but only what a process allocated or opened is known to it.
namespace fairlap::fakes {

// The driver hands out memory in blocks of this size, and puts what does not fill one together with others.
constexpr std::uint64_t kBlockBytes = std::uint64_t{2} << 20;

bool has_board();

// The address, unless the board is full.
std::optional<std::uint64_t> allocate_on_board(std::uint64_t bytes);

struct Export {
  std::uint64_t id = 0;
  std::int32_t pid = 0;  // of the process whose memory it is
  std::uint64_t block = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t address = 0;  // within the block; those of a board are the same in all processes
};

// A new one for each allocation, and the same for each request. None where there are too many.
std::optional<Export> export_from_board(std::uint64_t address, std::uint64_t bytes);
std::optional<Export> exported_as(std::uint64_t id);
void forget_export(std::uint64_t address);

void note_opened(std::uint64_t id);
void note_closed(std::uint64_t id);
// Whether a process that lives has opened it.
bool is_opened_elsewhere(std::uint64_t address);

// Whether work of this process runs or waits, for the others to see.
void publish_work(World& w);
int busy_others();

}  // namespace fairlap::fakes
