#pragma once

#include <cstddef>
#include <span>

namespace fairlap::loop {

// Memory whose every page is there before it is used, so that storing a sample never enters the kernel.
class PrefaultedMemory {
 public:
  explicit PrefaultedMemory(std::size_t bytes);
  ~PrefaultedMemory();

  PrefaultedMemory(const PrefaultedMemory&) = delete;  // Arrays handed to NumPy point into it.
  PrefaultedMemory& operator=(const PrefaultedMemory&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  template <class T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  std::size_t bytes_;
  std::size_t mapped_bytes_;
  std::byte* data_;
};

}  // namespace fairlap::loop
