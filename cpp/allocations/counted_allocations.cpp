// Counts what a process allocates, while it is asked to.
//
// Preloaded, so that these functions stand before the C library's, which do the work. A relaxed look at one
// flag is all that is added to an allocation that is not counted.

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#define FAIRLAP_PRELOADED extern "C" __attribute__((visibility("default")))

namespace {

std::atomic<bool> is_counting{false};
std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> allocated_bytes{0};

void count(std::size_t bytes) noexcept {
  if (!is_counting.load(std::memory_order_relaxed)) {
    return;
  }
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

// The function that would have been called. Without a guard of the C++ library, which may allocate before it
// is ready.
template <typename Function>
Function* next(std::atomic<Function*>& known, const char* name) noexcept {
  Function* found = known.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    known.store(found, std::memory_order_relaxed);
  }
  return found;
}

using Sized = void*(std::size_t);
using SizedTwice = void*(std::size_t, std::size_t);
using Resized = void*(void*, std::size_t);
using Placed = int(void**, std::size_t, std::size_t);

constinit std::atomic<Sized*> next_malloc{nullptr};
constinit std::atomic<SizedTwice*> next_calloc{nullptr};
constinit std::atomic<Resized*> next_realloc{nullptr};
constinit std::atomic<SizedTwice*> next_memalign{nullptr};
constinit std::atomic<SizedTwice*> next_aligned_alloc{nullptr};
constinit std::atomic<Placed*> next_posix_memalign{nullptr};

void* refuse() noexcept {
  errno = ENOMEM;
  return nullptr;
}

}  // namespace

FAIRLAP_PRELOADED void* malloc(std::size_t size) {
  count(size);
  Sized* const allocate = next(next_malloc, "malloc");
  return allocate == nullptr ? refuse() : allocate(size);
}

FAIRLAP_PRELOADED void* calloc(std::size_t number, std::size_t size) {
  std::size_t bytes = 0;
  if (!__builtin_mul_overflow(number, size, &bytes)) {
    count(bytes);
  }
  SizedTwice* const allocate = next(next_calloc, "calloc");
  return allocate == nullptr ? refuse() : allocate(number, size);
}

FAIRLAP_PRELOADED void* realloc(void* block, std::size_t size) {
  if (size != 0) {
    count(size);
  }
  Resized* const reallocate = next(next_realloc, "realloc");
  return reallocate == nullptr ? refuse() : reallocate(block, size);
}

FAIRLAP_PRELOADED void* memalign(std::size_t alignment, std::size_t size) {
  count(size);
  SizedTwice* const allocate = next(next_memalign, "memalign");
  return allocate == nullptr ? refuse() : allocate(alignment, size);
}

FAIRLAP_PRELOADED void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count(size);
  SizedTwice* const allocate = next(next_aligned_alloc, "aligned_alloc");
  return allocate == nullptr ? refuse() : allocate(alignment, size);
}

FAIRLAP_PRELOADED int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  count(size);
  Placed* const allocate = next(next_posix_memalign, "posix_memalign");
  return allocate == nullptr ? ENOMEM : allocate(block, alignment, size);
}

// Starts from 0.
FAIRLAP_PRELOADED void fairlap_begin_to_count_allocations() {
  allocations.store(0, std::memory_order_relaxed);
  allocated_bytes.store(0, std::memory_order_relaxed);
  is_counting.store(true, std::memory_order_seq_cst);
}

FAIRLAP_PRELOADED void fairlap_end_counting_allocations(std::uint64_t* number, std::uint64_t* bytes) {
  is_counting.store(false, std::memory_order_seq_cst);
  *number = allocations.load(std::memory_order_relaxed);
  *bytes = allocated_bytes.load(std::memory_order_relaxed);
}
