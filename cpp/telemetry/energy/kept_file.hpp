#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fairlap::telemetry {

// A small file of the kernel's that is read again and again: opened once, read into memory that is there
// already. The kernel generates its content for each read from the beginning.
class KeptFile {
 public:
  KeptFile() = default;
  explicit KeptFile(const std::string& path);
  ~KeptFile();
  KeptFile(KeptFile&& other) noexcept;
  KeptFile& operator=(KeptFile&& other) noexcept;

  // 0, or why the file could not be opened or read: errno.
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] std::string reason() const;  // in words, with the path; empty without an error
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  // The content; empty after an error, see error().
  std::string_view read() noexcept;

 private:
  std::string path_;
  int descriptor_ = -1;
  int error_ = 0;
  std::array<char, 4096> content_{};  // enough for every file that we read; the rest would be left out
};

// The number at the beginning of the text, which may have a sign; false when there is none.
bool leading_number(std::string_view text, double& number) noexcept;

}  // namespace fairlap::telemetry
