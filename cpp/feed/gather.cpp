#include "feed/gather.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "clock/monotonic_raw.hpp"
#include "feed/convert_sample.hpp"

namespace fairlap::feed {
namespace {

// What is read before it is converted should still be in a core's own cache by then.
constexpr std::size_t kStepBytes = std::size_t{128} << 10U;

// How many of the first samples are contiguous, so that one read or copy does for all.
std::size_t neighbours(std::span<const std::uint64_t> samples) noexcept {
  std::size_t count = 1;
  while (count < samples.size() && samples[count] == samples[count - 1] + 1) ++count;
  return count;
}

template <class Conversion>
ConvertSample in_layout(Layout layout) noexcept {
  return layout == Layout::as_is ? &convert_in_order<Conversion> : &convert_transposed<Conversion>;
}

ConvertSample same_type(std::size_t bytes, Layout layout) {
  if (bytes == 1) return in_layout<Same<std::uint8_t>>(layout);
  if (bytes == 2) return in_layout<Same<std::uint16_t>>(layout);
  if (bytes == 4) return in_layout<Same<std::uint32_t>>(layout);
  return in_layout<Same<std::uint64_t>>(layout);
}

ConvertSample conversion_of(ElementType from, ElementType to, Layout layout) {
  if (from == to) return same_type(bytes_of(from), layout);
  if (from == ElementType::uint8 && to == ElementType::float32) return in_layout<Uint8ToFloat32>(layout);
  if (from == ElementType::float32 && to == ElementType::bfloat16)
    return in_layout<Float32ToBfloat16>(layout);
  if (from == ElementType::int64 && to == ElementType::int32) return in_layout<Int64ToInt32>(layout);
  throw BadFeed("samples of " + std::string(name_of(from)) + " cannot be fed as " + std::string(name_of(to)) +
                "; what can be converted: uint8 to float32, float32 to bfloat16, int64 to int32");
}

std::vector<std::int64_t> shape_in_layout(const std::vector<std::int64_t>& shape, Layout layout) {
  if (layout == Layout::as_is) return shape;
  if (shape.size() != 3) {
    throw BadFeed("the layout of samples with " + std::to_string(shape.size()) +
                  " dimensions cannot be changed; it takes three: height, width and channels");
  }
  if (layout == Layout::to_channels_first) return {shape[2], shape[0], shape[1]};
  return {shape[1], shape[2], shape[0]};
}

}  // namespace

Gather::Gather(const Source& source, const GatherSettings& settings) : source_(source) {
  const SampleArray& given = source.array();
  const ElementType type = settings.type.value_or(given.type);
  delivered_ = {type, shape_in_layout(given.sample_shape, settings.layout), given.samples};
  delivered_bytes_ = delivered_.bytes_per_sample();
  convert_ = conversion_of(given.type, type, settings.layout);
  changes_nothing_ = given.type == type && settings.layout == Layout::as_is;
  const bool scaled = settings.scale != 1.0F || settings.offset != 0.0F;
  if (scaled && (given.type != ElementType::uint8 || type != ElementType::float32)) {
    throw BadFeed("scale and offset go with uint8 samples that are fed as float32");
  }
  if (!std::isfinite(settings.scale) || !std::isfinite(settings.offset)) {
    throw BadFeed("scale and offset must be finite numbers");
  }
  const std::size_t elements = given.elements_per_sample();
  shape_ = {1, elements, settings.scale, settings.offset};
  if (settings.layout == Layout::to_channels_first)
    shape_.inner = static_cast<std::size_t>(given.sample_shape[2]);
  if (settings.layout == Layout::to_channels_last) {
    shape_.inner = elements / static_cast<std::size_t>(given.sample_shape[0]);
  }
  shape_.outer = elements / shape_.inner;
  samples_per_step_ = std::max<std::size_t>(1, kStepBytes / source.bytes_per_sample());
  const bool reads = source.in_place(0) == nullptr;
  if (reads && !changes_nothing_) scratch_bytes_ = samples_per_step_ * source.bytes_per_sample();
}

void Gather::convert(std::uint64_t sample, const std::byte* from, std::byte* to) const {
  if (convert_(from, to, shape_)) return;
  throw ValueOutOfRange("sample " + std::to_string(sample) + " has a value that " +
                        std::string(name_of(delivered_.type)) + " cannot hold");
}

std::uint64_t Gather::fill(std::span<const std::uint64_t> samples, std::byte* slot,
                           std::span<std::byte> scratch) const {
  source_.check_still_there();
  if (scratch_bytes_ > 0) return fill_in_steps(samples, slot, scratch.data());
  if (source_.in_place(0) == nullptr) {
    const std::uint64_t began_ns = clock::MonotonicRaw::now_ns();
    read_runs(samples, slot);
    return clock::MonotonicRaw::now_ns() - began_ns;
  }
  if (changes_nothing_) {
    read_runs(samples, slot);
    return 0;
  }
  for (const std::uint64_t sample : samples) {
    convert(sample, source_.in_place(sample), slot);
    slot += delivered_bytes_;
  }
  return 0;
}

void Gather::read_runs(std::span<const std::uint64_t> samples, std::byte* to) const {
  while (!samples.empty()) {
    const std::size_t run = neighbours(samples);
    // A shuffled sample is where no prefetcher of the processor's looks: the next one's beginning is
    // asked for while this one is copied.
    if (run < samples.size()) {
      if (const std::byte* const next = source_.in_place(samples[run])) {
        for (std::size_t line = 0; line < 4; ++line) __builtin_prefetch(next + line * 64);
      }
    }
    source_.read(samples.front(), run, to);
    to += run * source_.bytes_per_sample();
    samples = samples.subspan(run);
  }
}

std::uint64_t Gather::fill_in_steps(std::span<const std::uint64_t> samples, std::byte* slot,
                                    std::byte* scratch) const {
  std::uint64_t reading_ns = 0;
  while (!samples.empty()) {
    const std::span<const std::uint64_t> step = samples.first(std::min(samples.size(), samples_per_step_));
    const std::uint64_t began_ns = clock::MonotonicRaw::now_ns();
    read_runs(step, scratch);
    reading_ns += clock::MonotonicRaw::now_ns() - began_ns;
    for (std::size_t i = 0; i < step.size(); ++i) {
      convert(step[i], scratch + i * source_.bytes_per_sample(), slot);
      slot += delivered_bytes_;
    }
    samples = samples.subspan(step.size());
  }
  return reading_ns;
}

}  // namespace fairlap::feed
