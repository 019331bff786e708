#include "loop/prefaulted_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace fairlap::loop {
namespace {

#if defined(MAP_POPULATE)
constexpr int kMapAllPages = MAP_POPULATE;  // one call for all of them costs a third of a fault for each
#else
constexpr int kMapAllPages = 0;
#endif

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t whole_pages(std::size_t bytes) {
  const std::size_t page = page_bytes();
  const std::size_t at_least_one = bytes == 0 ? 1 : bytes;
  return (at_least_one + page - 1) / page * page;
}

}  // namespace

PrefaultedMemory::PrefaultedMemory(std::size_t bytes) : bytes_(bytes), mapped_bytes_(whole_pages(bytes)) {
  void* const mapped =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | kMapAllPages, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(mapped);
  // Written, not only read, or a page that is not there yet would fault once more.
  const std::size_t page = page_bytes();
  for (std::size_t at = 0; at < mapped_bytes_; at += page) data_[at] = std::byte{0};
}

PrefaultedMemory::~PrefaultedMemory() { munmap(data_, mapped_bytes_); }

}  // namespace fairlap::loop
