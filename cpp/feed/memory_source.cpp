#include <cstring>

#include "feed/source.hpp"

namespace fairlap::feed {
namespace {

class MemorySource final : public Source {
 public:
  MemorySource(const std::byte* first, const SampleArray& array) : Source(array), first_(first) {}

  [[nodiscard]] const std::byte* in_place(std::uint64_t sample) const noexcept override {
    return first_ + sample * bytes_per_sample();
  }
  void read(std::uint64_t first, std::size_t samples, std::byte* to) const override {
    std::memcpy(to, in_place(first), samples * bytes_per_sample());
  }
  void check_still_there() const override {}

 private:
  const std::byte* first_;
};

}  // namespace

std::unique_ptr<Source> source_in_memory(const std::byte* first, const SampleArray& array) {
  if (array.samples == 0) throw BadFeed("the array has no samples");
  if (first == nullptr) throw BadFeed("the array has no address");
  static_cast<void>(array.bytes());  // throws where the shape cannot be right
  return std::make_unique<MemorySource>(first, array);
}

}  // namespace fairlap::feed
