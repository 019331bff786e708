#include <array>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "feed/source.hpp"
#include "tests/check.hpp"
#include "tests/refuses.hpp"
#include "tests/scratch_file.hpp"

using namespace fairlap::feed;
using fairlap::test::refusal;
using fairlap::test::refuses;
using fairlap::test::ScratchFile;

namespace {

std::string bytes_counting_up(std::size_t count) {
  std::string out(count, '\0');
  std::iota(out.begin(), out.end(), '\0');
  return out;
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
  const ScratchFile raw(bytes_counting_up(16));
  CHECK(refuses<BadFeed>([&] { source_in_raw_file(raw.path(), 0, {ElementType::float32, {5}, 0}); }));
  CHECK(refuses<BadFeed>([&] { source_in_raw_file(raw.path(), 0, {ElementType::float32, {4}, 2}); }));
  CHECK(refuses<BadFeed>([&] { source_in_raw_file(raw.path(), 16, {ElementType::uint8, {}, 0}); }));
}

TEST("a shape larger than any memory, or with an extent below one, is refused") {
  const ScratchFile file(bytes_counting_up(16));
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  CHECK(refuses<BadFeed>([&] { source_in_raw_file(file.path(), 0, {ElementType::uint8, {kHuge, 4}, 1}); }));
  CHECK(refuses<BadFeed>([&] { source_in_raw_file(file.path(), 0, {ElementType::uint8, {0}, 1}); }));
}

TEST("a file that is not there, or is a folder, is refused by name") {
  CHECK(refusal<BadFeed>([] {
          source_in_raw_file("/nowhere/at-all", 0, {ElementType::uint8, {}, 1});
        }).find("/nowhere/at-all") != std::string::npos);
  CHECK(refuses<BadFeed>([] { source_in_raw_file("/tmp", 0, {ElementType::uint8, {}, 1}); }));
}

TEST("a file that shrinks gives an error that names it, in the check and in the read itself") {
  const ScratchFile file(bytes_counting_up(16));
  const auto source = source_in_raw_file(file.path(), 4, {ElementType::int16, {2}, 3});
  source->check_still_there();
  file.shrink_to(4 + 9);
  std::array<std::byte, 4> read{};
  source->read(1, 1, read.data());
  CHECK(refusal<SourceFailed>([&] { source->read(2, 1, read.data()); }).find(file.path()) !=
        std::string::npos);
  CHECK(refusal<SourceFailed>([&] { source->check_still_there(); }).find("shorter") != std::string::npos);
}

TEST("a file that is deleted gives an error") {
  const ScratchFile file(bytes_counting_up(16));
  const auto source = source_in_raw_file(file.path(), 4, {ElementType::int16, {2}, 3});
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
