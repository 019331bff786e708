#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "feed/gather.hpp"

namespace fairlap::feed {

// Each conversion names what it reads, what it writes and whether a value fits. Elements are handled
// through memcpy, since raw samples in a file need not be aligned.

template <class Element>
struct Same {
  using From = Element;
  using To = Element;
  static bool fits(From /*value*/) noexcept { return true; }
  static To of(From value, const SampleShape& /*shape*/) noexcept { return value; }
};

struct Uint8ToFloat32 {
  using From = std::uint8_t;
  using To = float;
  static bool fits(From /*value*/) noexcept { return true; }
  static To of(From value, const SampleShape& shape) noexcept {
    return static_cast<float>(value) * shape.scale + shape.offset;
  }
};

// The upper half of a float32, rounded to the nearest, ties to even. A NaN stays one: rounding its
// bits could carry it into an infinity.
struct Float32ToBfloat16 {
  using From = float;
  using To = std::uint16_t;
  static bool fits(From /*value*/) noexcept { return true; }
  static To of(From value, const SampleShape& /*shape*/) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7fffU + (bits >> 16U & 1U);
    const std::uint32_t quiet_nan = bits | 0x400000U;
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return static_cast<std::uint16_t>((is_nan ? quiet_nan : rounded) >> 16U);
  }
};

struct Int64ToInt32 {
  using From = std::int64_t;
  using To = std::int32_t;
  static bool fits(From value) noexcept { return static_cast<std::int64_t>(static_cast<To>(value)) == value; }
  static To of(From value, const SampleShape& /*shape*/) noexcept { return static_cast<To>(value); }
};

template <class Conversion>
bool convert_in_order(const std::byte* from, std::byte* to, const SampleShape& shape) noexcept {
  using From = Conversion::From;
  using To = Conversion::To;
  const std::size_t elements = shape.outer * shape.inner;
  bool all_fit = true;
  for (std::size_t i = 0; i < elements; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    all_fit &= Conversion::fits(value);
    const To converted = Conversion::of(value, shape);
    std::memcpy(to + i * sizeof(To), &converted, sizeof(To));
  }
  return all_fit;
}

// outer x inner becomes inner x outer. Written in order, so that every line of the slot is written once.
template <class Conversion>
bool convert_transposed(const std::byte* from, std::byte* to, const SampleShape& shape) noexcept {
  using From = Conversion::From;
  using To = Conversion::To;
  bool all_fit = true;
  for (std::size_t column = 0; column < shape.inner; ++column) {
    for (std::size_t row = 0; row < shape.outer; ++row) {
      From value;
      std::memcpy(&value, from + (row * shape.inner + column) * sizeof(From), sizeof(From));
      all_fit &= Conversion::fits(value);
      const To converted = Conversion::of(value, shape);
      std::memcpy(to + (column * shape.outer + row) * sizeof(To), &converted, sizeof(To));
    }
  }
  return all_fit;
}

}  // namespace fairlap::feed
