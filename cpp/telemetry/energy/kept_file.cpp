#include "telemetry/energy/kept_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

namespace fairlap::telemetry {

KeptFile::KeptFile(const std::string& path) : path_(path) {
  do {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) {
    error_ = errno;
    return;
  }
  read();  // Some files open and then refuse to be read.
}

KeptFile::~KeptFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

KeptFile::KeptFile(KeptFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      error_(other.error_) {}

KeptFile& KeptFile::operator=(KeptFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(error_, other.error_);
  return *this;
}

std::string KeptFile::reason() const {
  return error_ == 0 ? "" : path_ + ": " + std::generic_category().message(error_);
}

std::string_view KeptFile::read() noexcept {
  if (descriptor_ < 0) return {};
  ssize_t length = 0;
  do {
    length = ::pread(descriptor_, content_.data(), content_.size(), 0);
  } while (length < 0 && errno == EINTR);
  error_ = length < 0 ? errno : 0;
  return length < 0 ? std::string_view()
                    : std::string_view(content_.data(), static_cast<std::size_t>(length));
}

bool leading_number(std::string_view text, double& number) noexcept {
  std::int64_t whole = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (problem != std::errc()) return false;
  number = static_cast<double>(whole);
  return true;
}

}  // namespace fairlap::telemetry
