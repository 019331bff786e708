#pragma once

// What tests of the sampler share: a folder that replaces the machine's root, and reading a source once.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "telemetry/sampling/source.hpp"
#include "tests/check.hpp"

namespace fairlap::test {

class FileTree {
 public:
  FileTree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fairlap-XXXXXX").string();
    CHECK(::mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
  }
  ~FileTree() {
    std::error_code busy;
    std::filesystem::remove_all(root_, busy);
  }
  FileTree(const FileTree&) = delete;
  FileTree& operator=(const FileTree&) = delete;

  [[nodiscard]] std::string root() const { return root_.string(); }
  [[nodiscard]] std::string path(const std::string& file) const { return root() + "/" + file; }

  // Keeps the file that is there, as the kernel does: who holds it open sees the new content.
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(file)).parent_path());
    std::ofstream(path(file), std::ios::trunc) << text;
  }

 private:
  std::filesystem::path root_;
};

inline std::vector<telemetry::Reading> taken_from(telemetry::Ring& ring) {
  std::vector<telemetry::Reading> readings(ring.size());
  readings.resize(ring.take(readings));
  return readings;
}

// One round of one lane, by the field's name.
inline std::map<std::string, telemetry::Reading> read_once(telemetry::Source& source, telemetry::Lane lane) {
  telemetry::Ring ring(1024);
  telemetry::Recorder recorder(ring, clock::Clock::named("monotonic_raw"));
  source.read(lane, recorder);
  CHECK_EQUAL(ring.overflowed(), 0U);
  std::map<std::string, telemetry::Reading> by_name;
  for (const telemetry::Reading& reading : taken_from(ring)) {
    const bool first = by_name.emplace(source.fields().at(reading.field).name, reading).second;
    CHECK(first);
  }
  return by_name;
}

inline const telemetry::Field& field_named(const telemetry::Source& source, const std::string& name) {
  for (const telemetry::Field& field : source.fields()) {
    if (field.name == name) return field;
  }
  throw Failure(source.name() + " has no field " + name);
}

}  // namespace fairlap::test
