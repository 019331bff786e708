#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fairlap::test {

// A new file with the given bytes, removed at the end of the test.
class ScratchFile {
 public:
  explicit ScratchFile(std::string_view bytes) {
    const char* const folder = std::getenv("TMPDIR");
    path_ = std::string(folder == nullptr ? "/tmp" : folder) + "/fairlap-feed-XXXXXX";
    const int descriptor = mkstemp(path_.data());
    const bool written = descriptor >= 0 &&
                         write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (descriptor >= 0) close(descriptor);
    if (!written) throw std::runtime_error("no scratch file");
  }
  ~ScratchFile() { std::remove(path_.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void shrink_to(std::size_t bytes) const {
    if (truncate(path_.c_str(), static_cast<off_t>(bytes)) != 0) throw std::runtime_error("cannot shrink");
  }

 private:
  std::string path_;
};

}  // namespace fairlap::test
