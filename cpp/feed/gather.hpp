#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>

#include "feed/element_type.hpp"
#include "feed/source.hpp"

namespace fairlap::feed {

// A sample has a value that the wanted type cannot hold; the message names the sample.
class ValueOutOfRange : public std::range_error {
  using std::range_error::range_error;
};

enum class Layout {
  as_is,
  to_channels_first,  // samples of height, width, channels become channels, height, width (NHWC to NCHW)
  to_channels_last,   // the other way round (NCHW to NHWC)
};

struct GatherSettings {
  std::optional<ElementType> type;  // none: as the source has it
  float scale = 1.0F;               // uint8 to float32 gives value * scale + offset
  float offset = 0.0F;
  Layout layout = Layout::as_is;
};

// What one conversion of a sample needs to know.
struct SampleShape {
  std::size_t outer = 1;  // the sample is outer x inner elements, transposed when the layout changes
  std::size_t inner = 1;
  float scale = 1.0F;
  float offset = 0.0F;
};

// False when a value does not fit.
using ConvertSample = bool (*)(const std::byte* from, std::byte* to, const SampleShape& shape) noexcept;

// Copies samples by index into a slot, as the consumer wants them. Threads may share one; each has its
// own scratch for what is read from a file and changed on the way.
class Gather {
 public:
  Gather(const Source& source, const GatherSettings& settings);

  [[nodiscard]] const SampleArray& delivered() const noexcept { return delivered_; }
  [[nodiscard]] std::size_t scratch_bytes() const noexcept { return scratch_bytes_; }

  // How long reading took of it, in nanoseconds. Throws SourceFailed or ValueOutOfRange.
  std::uint64_t fill(std::span<const std::uint64_t> samples, std::byte* slot,
                     std::span<std::byte> scratch) const;

 private:
  std::uint64_t fill_in_steps(std::span<const std::uint64_t> samples, std::byte* slot,
                              std::byte* scratch) const;
  void read_runs(std::span<const std::uint64_t> samples, std::byte* to) const;
  void convert(std::uint64_t sample, const std::byte* from, std::byte* to) const;

  const Source& source_;
  SampleArray delivered_;
  std::size_t delivered_bytes_;  // of one sample
  SampleShape shape_;
  ConvertSample convert_;
  bool changes_nothing_;
  std::size_t scratch_bytes_ = 0;
  std::size_t samples_per_step_ = 1;
};

}  // namespace fairlap::feed
