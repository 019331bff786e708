#include "feed/npy_header.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace fairlap::feed {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kLongestHeader = std::size_t{1} << 20U;  // NumPy's own are a hundred bytes or two

constexpr std::array<std::pair<std::string_view, ElementType>, 16> kKnownTypes{{
    {"|b1", ElementType::boolean},
    {"|u1", ElementType::uint8},
    {"|i1", ElementType::int8},
    {"<i2", ElementType::int16},
    {"<i4", ElementType::int32},
    {"<i8", ElementType::int64},
    {"<f2", ElementType::float16},
    {"<f4", ElementType::float32},
    {"<f8", ElementType::float64},
    {"<b1", ElementType::boolean},
    {"<u1", ElementType::uint8},
    {"<i1", ElementType::int8},
    {"b1", ElementType::boolean},
    {"u1", ElementType::uint8},
    {"i1", ElementType::int8},
    {"?", ElementType::boolean},
}};

[[noreturn]] void refuse(const std::string& what) { throw BadFeed("the header of the .npy file " + what); }

unsigned byte_at(std::span<const char> bytes, std::size_t place) {
  return static_cast<unsigned char>(bytes[place]);
}

// Reads the one dictionary that the format allows, and nothing else of Python.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  NpyHeader read() {
    expect('{');
    while (!next_is('}')) {
      read_entry(quoted());
      if (!next_is(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) refuse("has text after its dictionary");
    if (!type_ || !fortran_order_ || !shape_) refuse("lacks one of descr, fortran_order and shape");
    if (*fortran_order_ && shape_->size() > 1) {
      refuse("is in fortran_order, where samples are scattered; save numpy.ascontiguousarray of it");
    }
    if (shape_->empty()) refuse("has the shape (), which has no samples");
    NpyHeader header;
    header.array.type = *type_;
    header.array.samples = static_cast<std::size_t>(shape_->front());
    header.array.sample_shape.assign(shape_->begin() + 1, shape_->end());
    return header;
  }

 private:
  void read_entry(std::string_view key) {
    expect(':');
    skip_space();
    if (key == "descr" && !type_) {
      type_ = type_named(quoted());
    } else if (key == "fortran_order" && !fortran_order_) {
      fortran_order_ = truth();
    } else if (key == "shape" && !shape_) {
      shape_ = extents();
    } else {
      refuse("has '" + std::string(key) + "' twice or where the format knows no such key");
    }
  }

  static ElementType type_named(std::string_view name) {
    for (const auto& [known, type] : kKnownTypes) {
      if (known == name) return type;
    }
    refuse("has elements of type '" + std::string(name) +
           "', which cannot be fed; give the file as raw samples if their bytes are right");
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool next_is(char wanted) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!next_is(wanted)) {
      refuse(std::string("cannot be read: there is no '") + wanted + "' at byte " + std::to_string(at_) +
             " of its text");
    }
  }
  std::string_view quoted() {
    const char quote = next_is('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) refuse("has a name that does not end");
    const std::string_view out = text_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }
  bool truth() {
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    refuse("has neither True nor False for fortran_order");
  }
  std::vector<std::int64_t> extents() {
    std::vector<std::int64_t> out;
    expect('(');
    while (!next_is(')')) {
      skip_space();
      std::int64_t extent = 0;
      const char* const end = text_.data() + text_.size();
      const auto [after, error] = std::from_chars(text_.data() + at_, end, extent);
      if (error != std::errc() || extent < 0) refuse("has a shape that is not a tuple of sizes");
      at_ = static_cast<std::size_t>(after - text_.data());
      out.push_back(extent);
      if (!next_is(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<ElementType> type_;
  std::optional<bool> fortran_order_;
  std::optional<std::vector<std::int64_t>> shape_;
};

struct Prefix {
  std::size_t bytes = 0;
  std::size_t text_bytes = 0;
};

Prefix prefix_of(std::span<const char> beginning) {
  if (!looks_like_npy(beginning)) refuse("does not begin as one");
  if (beginning.size() < 10) refuse("is cut short");
  const unsigned version = byte_at(beginning, 6);
  Prefix prefix;
  if (version == 1) {
    prefix = {10, byte_at(beginning, 8) | byte_at(beginning, 9) << 8U};
  } else if (version == 2 || version == 3) {
    if (beginning.size() < kNpyLongestPrefix) refuse("is cut short");
    prefix.bytes = kNpyLongestPrefix;
    for (unsigned place = 0; place < 4; ++place) {
      prefix.text_bytes |= static_cast<std::size_t>(byte_at(beginning, 8 + place)) << (8 * place);
    }
  } else {
    refuse("is of version " + std::to_string(version) + "; 1, 2 and 3 are known");
  }
  if (prefix.text_bytes > kLongestHeader) refuse("declares a header longer than a megabyte");
  return prefix;
}

}  // namespace

bool looks_like_npy(std::span<const char> beginning) {
  return std::string_view(beginning.data(), beginning.size()).starts_with(kMagic);
}

std::size_t npy_header_bytes(std::span<const char> beginning) {
  const Prefix prefix = prefix_of(beginning);
  return prefix.bytes + prefix.text_bytes;
}

NpyHeader parse_npy_header(std::string_view header) {
  const Prefix prefix = prefix_of({header.data(), header.size()});
  if (header.size() < prefix.bytes + prefix.text_bytes) refuse("is cut short");
  NpyHeader out = DictionaryReader(header.substr(prefix.bytes, prefix.text_bytes)).read();
  out.data_offset = prefix.bytes + prefix.text_bytes;
  return out;
}

}  // namespace fairlap::feed
