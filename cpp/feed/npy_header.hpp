#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "feed/element_type.hpp"

namespace fairlap::feed {

// What a .npy file declares (NumPy's format, versions 1 to 3).
struct NpyHeader {
  SampleArray array;            // the first extent counts the samples
  std::size_t data_offset = 0;  // where the samples begin in the file
};

constexpr std::size_t kNpyLongestPrefix = 12;  // enough of a file for npy_header_bytes

bool looks_like_npy(std::span<const char> beginning);

// How many bytes the header takes in all, from the file's first ones.
std::size_t npy_header_bytes(std::span<const char> beginning);

// Throws BadFeed with what is wrong with the header.
NpyHeader parse_npy_header(std::string_view header);

}  // namespace fairlap::feed
