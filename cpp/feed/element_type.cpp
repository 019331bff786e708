#include "feed/element_type.hpp"

#include <array>
#include <limits>

namespace fairlap::feed {
namespace {

struct Entry {
  ElementType type;
  std::size_t bytes;
  std::string_view name;
};

constexpr std::array kEntries{
    Entry{ElementType::boolean, 1, "bool"},    Entry{ElementType::uint8, 1, "uint8"},
    Entry{ElementType::int8, 1, "int8"},       Entry{ElementType::int16, 2, "int16"},
    Entry{ElementType::int32, 4, "int32"},     Entry{ElementType::int64, 8, "int64"},
    Entry{ElementType::float16, 2, "float16"}, Entry{ElementType::bfloat16, 2, "bfloat16"},
    Entry{ElementType::float32, 4, "float32"}, Entry{ElementType::float64, 8, "float64"},
};

const Entry& entry_of(ElementType type) noexcept { return kEntries[static_cast<std::size_t>(type)]; }

}  // namespace

std::size_t bytes_of(ElementType type) noexcept { return entry_of(type).bytes; }

std::string_view name_of(ElementType type) noexcept { return entry_of(type).name; }

ElementType element_type_named(std::string_view name) {
  std::string known;
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.type;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw BadFeed("samples of type '" + std::string(name) + "' cannot be fed; these can: " + known);
}

std::size_t checked_product(std::size_t a, std::size_t b) {
  // Half of what a size can express, since pointer differences are signed.
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 2;
  if (b != 0 && a > kMost / b) throw BadFeed("the samples are larger than any memory; is their shape right?");
  return a * b;
}

std::size_t SampleArray::elements_per_sample() const {
  std::size_t elements = 1;
  for (const std::int64_t extent : sample_shape) {
    if (extent < 1) {
      throw BadFeed("every extent of a sample's shape must be at least 1, not " + std::to_string(extent));
    }
    elements = checked_product(elements, static_cast<std::size_t>(extent));
  }
  return elements;
}

std::size_t SampleArray::bytes_per_sample() const {
  return checked_product(elements_per_sample(), bytes_of(type));
}

std::size_t SampleArray::bytes() const { return checked_product(bytes_per_sample(), samples); }

}  // namespace fairlap::feed
