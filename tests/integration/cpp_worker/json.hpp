// JSON, as much of it as the protocol and a safetensors header use.

#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace worker {

struct Json {
  enum Kind { null, number, text, list, object } kind = null;
  double as_number = 0;
  std::string as_text{};
  std::vector<Json> items{};
  std::map<std::string, Json> fields{};

  const Json& at(const std::string& name) const {
    const auto found = fields.find(name);
    if (found == fields.end()) throw std::runtime_error("a message lacks " + name);
    return found->second;
  }
  std::string text_or(const std::string& name, const std::string& otherwise) const {
    const auto found = fields.find(name);
    return found == fields.end() ? otherwise : found->second.as_text;
  }
  double number_or(const std::string& name, double otherwise) const {
    const auto found = fields.find(name);
    return found == fields.end() || found->second.kind != number ? otherwise : found->second.as_number;
  }
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view source) : left_(source) {}

  Json value() {
    const char first = peek();
    if (first == '{') return object();
    if (first == '[') return list();
    if (first == '"') return {.kind = Json::text, .as_text = text()};
    for (const std::string_view word : {"null", "true", "false"}) {  // this worker needs none of them
      if (!left_.starts_with(word)) continue;
      left_.remove_prefix(word.size());
      return {};
    }
    return number();
  }

 private:
  char peek() {
    const auto start = left_.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos) throw std::runtime_error("a message ends too early");
    left_.remove_prefix(start);
    return left_.front();
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) throw std::runtime_error(std::string("a message lacks a ") + wanted);
  }
  Json number() {
    std::size_t used = 0;
    Json result{.kind = Json::number, .as_number = std::stod(std::string(left_.substr(0, 40)), &used)};
    left_.remove_prefix(used);
    return result;
  }
  std::string text() {
    expect('"');
    std::string result;
    for (;;) {
      if (left_.empty()) throw std::runtime_error("a text in a message does not end");
      char letter = left_.front();
      left_.remove_prefix(1);
      if (letter == '"') return result;
      if (letter == '\\' && !left_.empty()) {
        letter = left_.front();
        left_.remove_prefix(1);
        if (letter != '"' && letter != '\\' && letter != '/')
          throw std::runtime_error("this worker knows only the escapes that names of files need");
      }
      result += letter;
    }
  }
  Json list() {
    Json result{.kind = Json::list};
    expect('[');
    while (!take(']')) {
      result.items.push_back(value());
      take(',');
    }
    return result;
  }
  Json object() {
    Json result{.kind = Json::object};
    expect('{');
    while (!take('}')) {
      peek();
      const std::string name = text();
      expect(':');
      result.fields[name] = value();
      take(',');
    }
    return result;
  }

  std::string_view left_;
};

inline std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
  }
  return result + '"';
}

}  // namespace worker
