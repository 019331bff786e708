#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "feed/gather.hpp"
#include "feed/source.hpp"
#include "tests/check.hpp"
#include "tests/refuses.hpp"
#include "tests/scratch_file.hpp"

using namespace fairlap::feed;
using fairlap::test::refusal;
using fairlap::test::refuses;
using fairlap::test::ScratchFile;

namespace {

template <class Element>
const std::byte* bytes_in(const std::vector<Element>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

// The samples as a consumer gets them; room after the end shows that nothing is written there.
template <class To>
std::vector<To> gathered(const Source& source, const GatherSettings& settings,
                         const std::vector<std::uint64_t>& samples) {
  const Gather gather(source, settings);
  const std::size_t bytes = samples.size() * gather.delivered().bytes_per_sample();
  std::vector<To> out(bytes / sizeof(To) + 1);
  std::memset(&out.back(), 0x5a, sizeof(To));
  std::vector<std::byte> scratch(gather.scratch_bytes());
  gather.fill(samples, reinterpret_cast<std::byte*>(out.data()), scratch);
  std::array<unsigned char, sizeof(To)> after{};
  std::memcpy(after.data(), &out.back(), sizeof(To));
  for (const unsigned char byte : after) CHECK_EQUAL(unsigned{byte}, 0x5aU);
  out.pop_back();
  return out;
}

template <class To, class From>
std::vector<To> converted(const std::vector<From>& values, ElementType from, const GatherSettings& settings) {
  const auto source =
      source_in_memory(bytes_in(values), {from, {static_cast<std::int64_t>(values.size())}, 1});
  return gathered<To>(*source, settings, {0});
}

TEST("samples come in the order they are asked for, some twice, in memory and from a file alike") {
  const std::vector<std::uint16_t> values{0, 1, 10, 11, 20, 21, 30, 31};
  const std::vector<std::uint16_t> wanted{30, 31, 0, 1, 30, 31, 20, 21};
  const SampleArray array{ElementType::int16, {2}, 4};
  CHECK(gathered<std::uint16_t>(*source_in_memory(bytes_in(values), array), {}, {3, 0, 3, 2}) == wanted);
  const ScratchFile file({reinterpret_cast<const char*>(values.data()), 16});
  CHECK(gathered<std::uint16_t>(*source_in_raw_file(file.path(), 0, array), {}, {3, 0, 3, 2}) == wanted);
}

TEST("uint8 becomes float32 as value times scale plus offset, for every value") {
  std::vector<std::uint8_t> values(256);
  std::iota(values.begin(), values.end(), std::uint8_t{0});
  const float scale = 1.0F / 255.0F;
  const auto out = converted<float>(values, ElementType::uint8, {ElementType::float32, scale, -0.5F, {}});
  for (unsigned value = 0; value < 256; ++value) {
    CHECK_EQUAL(out[value], static_cast<float>(value) * scale + -0.5F);
  }
}

TEST("float32 becomes bfloat16 rounded to the nearest, ties to even") {
  const std::vector<std::pair<std::uint32_t, std::uint16_t>> known{
      {0x3f800000U, 0x3f80U},  // 1 is exact
      {0x3f808000U, 0x3f80U},  // half way, even below
      {0x3f818000U, 0x3f82U},  // half way, even above
      {0x3f808001U, 0x3f81U},  // a little more than half way
      {0x3f817fffU, 0x3f81U},  // a little less
      {0x80000000U, 0x8000U},  // minus zero
      {0x7f7fffffU, 0x7f80U},  // the largest float is nearer to what would come next: infinity
      {0xff800000U, 0xff80U},  // minus infinity
      {0x00000001U, 0x0000U},  // the smallest float
  };
  for (const auto& [from, to] : known) {
    const auto out = converted<std::uint16_t>(std::vector<float>{std::bit_cast<float>(from)},
                                              ElementType::float32, {ElementType::bfloat16, 1.0F, 0.0F, {}});
    CHECK_EQUAL(out[0], to);
  }
}

TEST("a NaN stays a NaN in bfloat16, whatever its bits") {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xffffffffU, 0x7fc00000U, 0xff80ffffU}) {
    const auto out = converted<std::uint16_t>(std::vector<float>{std::bit_cast<float>(bits)},
                                              ElementType::float32, {ElementType::bfloat16, 1.0F, 0.0F, {}});
    CHECK(std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(out[0]) << 16U)));
    CHECK_EQUAL(unsigned{out[0]} >> 15U, bits >> 31U);
  }
}

TEST("int64 becomes int32, and a value that does not fit is an error that names the sample") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int32_t>::min();
  const GatherSettings settings{.type = ElementType::int32};
  const std::vector<std::int64_t> values{kMost, kLeast, -1, kMost + 1, kLeast - 1};
  const auto source = source_in_memory(bytes_in(values), {ElementType::int64, {}, 5});
  CHECK((gathered<std::int32_t>(*source, settings, {0, 1, 2}) ==
         std::vector<std::int32_t>{static_cast<std::int32_t>(kMost), static_cast<std::int32_t>(kLeast), -1}));
  for (const std::uint64_t bad : {3U, 4U}) {
    const std::string message =
        refusal<ValueOutOfRange>([&] { gathered<std::int32_t>(*source, settings, {0, bad}); });
    CHECK(message.find("sample " + std::to_string(bad)) != std::string::npos);
  }
}

// Height 2, width 3, channels 4; the value encodes its place: 100 h + 10 w + c.
template <class Element>
std::vector<Element> channels_last(Element first) {
  std::vector<Element> out;
  for (int h = 0; h < 2; ++h)
    for (int w = 0; w < 3; ++w)
      for (int c = 0; c < 4; ++c)
        out.push_back(static_cast<Element>(first + static_cast<Element>(100 * h + 10 * w + c)));
  return out;
}

template <class Element>
std::vector<Element> channels_first(Element first) {
  std::vector<Element> out;
  for (int c = 0; c < 4; ++c)
    for (int h = 0; h < 2; ++h)
      for (int w = 0; w < 3; ++w)
        out.push_back(static_cast<Element>(first + static_cast<Element>(100 * h + 10 * w + c)));
  return out;
}

template <class Element>
void check_layouts(ElementType type) {
  const std::vector<Element> last = channels_last<Element>(0);
  const std::vector<Element> first = channels_first<Element>(0);
  CHECK(gathered<Element>(*source_in_memory(bytes_in(last), {type, {2, 3, 4}, 1}),
                          {{}, 1.0F, 0.0F, Layout::to_channels_first}, {0}) == first);
  CHECK(gathered<Element>(*source_in_memory(bytes_in(first), {type, {4, 2, 3}, 1}),
                          {{}, 1.0F, 0.0F, Layout::to_channels_last}, {0}) == last);
}

TEST("channels change from last to first and back, for elements of every size") {
  check_layouts<std::uint8_t>(ElementType::uint8);
  check_layouts<std::int16_t>(ElementType::int16);
  check_layouts<float>(ElementType::float32);
  check_layouts<std::int64_t>(ElementType::int64);
}

TEST("the delivered shape follows the layout") {
  const std::vector<std::uint8_t> values(24);
  const auto last = source_in_memory(bytes_in(values), {ElementType::uint8, {2, 3, 4}, 1});
  const Gather to_first(*last, {{}, 1.0F, 0.0F, Layout::to_channels_first});
  CHECK((to_first.delivered().sample_shape == std::vector<std::int64_t>{4, 2, 3}));
  const auto first = source_in_memory(bytes_in(values), {ElementType::uint8, {4, 2, 3}, 1});
  const Gather to_last(*first, {{}, 1.0F, 0.0F, Layout::to_channels_last});
  CHECK((to_last.delivered().sample_shape == std::vector<std::int64_t>{2, 3, 4}));
}

TEST("type and layout change together, from memory and from a file, over many steps of reading") {
  constexpr std::size_t kSamples = 20'000;  // 480,000 bytes: several steps
  std::vector<std::uint8_t> values;
  std::vector<float> wanted;
  std::vector<std::uint64_t> order;
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    const auto first = static_cast<std::uint8_t>(sample % 90);
    for (const std::uint8_t value : channels_last<std::uint8_t>(first)) values.push_back(value);
    for (const std::uint8_t value : channels_first<std::uint8_t>(first))
      wanted.push_back(static_cast<float>(value) * 2.0F);
    order.push_back(sample);
  }
  const SampleArray array{ElementType::uint8, {2, 3, 4}, kSamples};
  const GatherSettings settings{
      .type = ElementType::float32, .scale = 2.0F, .layout = Layout::to_channels_first};
  CHECK(gathered<float>(*source_in_memory(bytes_in(values), array), settings, order) == wanted);
  const ScratchFile file({reinterpret_cast<const char*>(values.data()), values.size()});
  CHECK(gathered<float>(*source_in_raw_file(file.path(), 0, array), settings, order) == wanted);
}

TEST("reading from a file is counted as time of the source, copying from memory is not") {
  const std::vector<std::uint8_t> values(1 << 20);
  const SampleArray array{ElementType::uint8, {1 << 20}, 1};
  std::vector<std::byte> room(1 << 20);
  const std::array<std::uint64_t, 1> first{0};
  const auto in_memory = source_in_memory(bytes_in(values), array);
  CHECK_EQUAL(Gather(*in_memory, {}).fill(first, room.data(), {}), 0U);
  const ScratchFile file({reinterpret_cast<const char*>(values.data()), values.size()});
  const auto in_file = source_in_raw_file(file.path(), 0, array);
  CHECK(Gather(*in_file, {}).fill(first, room.data(), {}) > 0);
}

TEST("a conversion that is not known, or a layout of samples without three dimensions, is refused") {
  const std::vector<double> values(8);
  const auto doubles = source_in_memory(bytes_in(values), {ElementType::float64, {8}, 1});
  CHECK(refuses<BadFeed>([&] { Gather(*doubles, {ElementType::float32, 1.0F, 0.0F, {}}); }));
  CHECK(refuses<BadFeed>([&] { Gather(*doubles, {{}, 1.0F, 0.0F, Layout::to_channels_first}); }));
  CHECK(refuses<BadFeed>([&] { Gather(*doubles, {{}, 2.0F, 0.0F, {}}); }));
  const auto bytes = source_in_memory(bytes_in(values), {ElementType::uint8, {64}, 1});
  CHECK(refuses<BadFeed>([&] { Gather(*bytes, {ElementType::float32, NAN, 0.0F, {}}); }));
}

TEST("a file that shrinks while a batch is gathered gives an error") {
  const ScratchFile file(std::string(100, 'x'));
  const auto source = source_in_raw_file(file.path(), 0, {ElementType::uint8, {10}, 10});
  file.shrink_to(95);
  CHECK(refuses<SourceFailed>([&] { gathered<std::uint8_t>(*source, {}, {0}); }));
}

}  // namespace

TEST_MAIN()
