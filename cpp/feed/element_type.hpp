#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fairlap::feed {

static_assert(std::endian::native == std::endian::little, "samples are little-endian and are not swapped");

// The request cannot be fed; the message is for the user.
class BadFeed : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

enum class ElementType { boolean, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64 };

std::size_t bytes_of(ElementType type) noexcept;
std::string_view name_of(ElementType type) noexcept;
ElementType element_type_named(std::string_view name);

// Samples of one shape, one after the other.
struct SampleArray {
  ElementType type = ElementType::float32;
  std::vector<std::int64_t> sample_shape;
  std::size_t samples = 0;

  [[nodiscard]] std::size_t elements_per_sample() const;  // throws BadFeed where it does not fit in memory
  [[nodiscard]] std::size_t bytes_per_sample() const;
  [[nodiscard]] std::size_t bytes() const;
};

// The product, or BadFeed where it is larger than any memory.
std::size_t checked_product(std::size_t a, std::size_t b);

}  // namespace fairlap::feed
