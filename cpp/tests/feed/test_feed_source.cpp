#include <array>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "feed/npy_header.hpp"
#include "feed/source.hpp"
#include "tests/check.hpp"
#include "tests/refuses.hpp"
#include "tests/scratch_file.hpp"

using namespace fairlap::feed;
using fairlap::test::refusal;
using fairlap::test::refuses;
using fairlap::test::ScratchFile;

namespace {

std::string npy(const std::string& dictionary, char version = 1) {
  std::string out("\x93NUMPY", 6);
  out += version;
  out += '\0';
  const std::string text = dictionary + std::string(64 - (dictionary.size() + 13) % 64, ' ') + "\n";
  for (unsigned place = 0; place < (version == 1 ? 2U : 4U); ++place) {
    out += static_cast<char>(text.size() >> (8 * place) & 0xffU);
  }
  return out + text;
}

std::string bytes_counting_up(std::size_t count) {
  std::string out(count, '\0');
  std::iota(out.begin(), out.end(), '\0');
  return out;
}

const std::string shape_3_2 = "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2), }";

TEST("a .npy header of every version gives type, shape and where the samples begin") {
  for (const char version : {'\1', '\2', '\3'}) {
    const std::string header = npy(shape_3_2, version);
    const NpyHeader parsed = parse_npy_header(header);
    CHECK(parsed.array.type == ElementType::int16);
    CHECK_EQUAL(parsed.array.samples, 3U);
    CHECK_EQUAL(parsed.array.sample_shape.size(), 1U);
    CHECK_EQUAL(parsed.array.sample_shape[0], 2);
    CHECK_EQUAL(parsed.data_offset, header.size());
  }
}

TEST("a .npy header in another order and with other quotes is the same header") {
  const NpyHeader parsed = parse_npy_header(npy(R"({"shape":(7,),"fortran_order":True,"descr":"|u1"})"));
  CHECK(parsed.array.type == ElementType::uint8);
  CHECK_EQUAL(parsed.array.samples, 7U);
  CHECK(parsed.array.sample_shape.empty());
}

TEST("a .npy header that cannot be fed is refused with the reason") {
  const std::array<std::pair<const char*, const char*>, 9> wrong{{
      {"{'descr': '>i2', 'fortran_order': False, 'shape': (3, 2), }", "'>i2'"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (3, 2), }", "'|O'"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", "fortran_order"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "no samples"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 2), }", "tuple of sizes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "tuple of sizes"},
      {"{'descr': '<f4', 'fortran_order': False}", "lacks"},
      {"{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (3,)}", "'descr' twice"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} + 1", "after its dictionary"},
  }};
  for (const auto& [dictionary, reason] : wrong) {
    const std::string message = refusal<BadFeed>([&] { parse_npy_header(npy(dictionary)); });
    CHECK(message.find(reason) != std::string::npos);
  }
}

TEST("a .npy header cut at any byte, or with any byte changed, is refused or read but never crashes") {
  const std::string whole = npy(shape_3_2);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CHECK(refuses<BadFeed>([&] { parse_npy_header(whole.substr(0, length)); }));
  }
  for (std::size_t place = 0; place < whole.size(); ++place) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole;
      changed[place] = static_cast<char>(value);
      refusal<BadFeed>([&] { parse_npy_header(changed); });
    }
  }
}

TEST("every sample of a .npy file is read unchanged") {
  const ScratchFile file(npy(shape_3_2) + bytes_counting_up(12));
  const auto source = source_in_npy_file(file.path());
  for (unsigned sample = 0; sample < 3; ++sample) {
    std::array<unsigned char, 4> read{};
    source->read(sample, 1, reinterpret_cast<std::byte*>(read.data()));
    for (unsigned i = 0; i < 4; ++i) CHECK_EQUAL(unsigned{read[i]}, 4 * sample + i);
  }
}

TEST("a raw file is read from its offset on, and its size gives the number of samples") {
  const ScratchFile file(bytes_counting_up(16));
  const auto source = source_in_raw_file(file.path(), 4, {ElementType::uint8, {3}, 0});
  CHECK_EQUAL(source->array().samples, 4U);
  std::array<unsigned char, 3> read{};
  source->read(3, 1, reinterpret_cast<std::byte*>(read.data()));
  CHECK_EQUAL(unsigned{read[0]}, 13U);
}

TEST("a file too short for its samples is refused before feeding begins") {
  const ScratchFile short_npy(npy(shape_3_2) + bytes_counting_up(11));
  CHECK(refuses<BadFeed>([&] { source_in_npy_file(short_npy.path()); }));
  const ScratchFile raw(bytes_counting_up(16));
  CHECK(refuses<BadFeed>([&] { source_in_raw_file(raw.path(), 0, {ElementType::float32, {5}, 0}); }));
  CHECK(refuses<BadFeed>([&] { source_in_raw_file(raw.path(), 0, {ElementType::float32, {4}, 2}); }));
  CHECK(refuses<BadFeed>([&] { source_in_raw_file(raw.path(), 16, {ElementType::uint8, {}, 0}); }));
  CHECK(refuses<BadFeed>([&] { source_in_npy_file(raw.path()); }));
}

TEST("a shape larger than any memory, or with an extent below one, is refused") {
  const ScratchFile file(bytes_counting_up(16));
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  CHECK(refuses<BadFeed>([&] { source_in_raw_file(file.path(), 0, {ElementType::uint8, {kHuge, 4}, 1}); }));
  CHECK(refuses<BadFeed>([&] { source_in_raw_file(file.path(), 0, {ElementType::uint8, {0}, 1}); }));
  const ScratchFile vast(
      npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 8), }"));
  CHECK(refuses<BadFeed>([&] { source_in_npy_file(vast.path()); }));
}

TEST("a file that is not there, or is a folder, is refused by name") {
  CHECK(refusal<BadFeed>([] { source_in_npy_file("/nowhere/at-all.npy"); }).find("/nowhere/at-all.npy") !=
        std::string::npos);
  CHECK(refuses<BadFeed>([] { source_in_raw_file("/tmp", 0, {ElementType::uint8, {}, 1}); }));
}

TEST("a file that shrinks gives an error that names it, in the check and in the read itself") {
  const ScratchFile file(npy(shape_3_2) + bytes_counting_up(12));
  const auto source = source_in_npy_file(file.path());
  source->check_still_there();
  file.shrink_to(npy(shape_3_2).size() + 9);
  std::array<std::byte, 4> read{};
  source->read(1, 1, read.data());
  CHECK(refusal<SourceFailed>([&] { source->read(2, 1, read.data()); }).find(file.path()) !=
        std::string::npos);
  CHECK(refusal<SourceFailed>([&] { source->check_still_there(); }).find("shorter") != std::string::npos);
}

TEST("a file that is deleted gives an error") {
  const ScratchFile file(npy(shape_3_2) + bytes_counting_up(12));
  const auto source = source_in_npy_file(file.path());
  std::remove(file.path().c_str());
  CHECK(refusal<SourceFailed>([&] { source->check_still_there(); }).find("deleted") != std::string::npos);
}

TEST("samples in memory are where they lie, without a copy") {
  const std::vector<float> values{0, 1, 2, 3, 4, 5};
  const auto* const first = reinterpret_cast<const std::byte*>(values.data());
  const auto source = source_in_memory(first, {ElementType::float32, {2}, 3});
  CHECK(source->in_place(2) == first + 16);
  CHECK(refuses<BadFeed>([&] { source_in_memory(first, {ElementType::float32, {2}, 0}); }));
  CHECK(refuses<BadFeed>([] { source_in_memory(nullptr, {ElementType::float32, {2}, 3}); }));
}

}  // namespace

TEST_MAIN()
