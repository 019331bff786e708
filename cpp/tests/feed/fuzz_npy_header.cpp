// libFuzzer's door to the one reader of foreign bytes in the engine: the header of a .npy file. `make fuzz`
// builds it where clang is installed.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "feed/npy_header.hpp"
#include "feed/source.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const std::span<const char> beginning(file.data(), file.size());
  if (!fairlap::feed::looks_like_npy(beginning)) return 0;
  try {
    const std::size_t whole = fairlap::feed::npy_header_bytes(beginning);
    if (whole > file.size()) return 0;
    const fairlap::feed::NpyHeader header = fairlap::feed::parse_npy_header(file.substr(0, whole));
    if (header.data_offset > file.size() || header.array.bytes_per_sample() == 0) __builtin_trap();
  } catch (const fairlap::feed::BadFeed&) {
    return 0;
  }
  return 0;
}
