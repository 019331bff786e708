#include "loop/prefaulted_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>

namespace fairlap::loop {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t at_least_one = bytes == 0 ? 1 : bytes;
  return (at_least_one + page - 1) / page * page;
}

}  // namespace

PrefaultedMemory::PrefaultedMemory(std::size_t bytes) : bytes_(bytes), mapped_bytes_(whole_pages(bytes)) {
  void* const mapped =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(mapped);
  std::memset(data_, 0, mapped_bytes_);  // written, not only read, or each page would fault once more
}

PrefaultedMemory::~PrefaultedMemory() { munmap(data_, mapped_bytes_); }

}  // namespace fairlap::loop
