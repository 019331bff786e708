#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "feed/source.hpp"

namespace fairlap::feed {
namespace {

std::string words_of(int error) { return std::generic_category().message(error); }

// A file that was opened for reading, with its size at that time.
class OpenFile {
 public:
  // Opening a named pipe would wait for a writer; O_NONBLOCK changes nothing for a regular file.
  explicit OpenFile(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) throw BadFeed("cannot open '" + path_ + "': " + words_of(errno));
    const struct stat facts = look();
    if (!S_ISREG(facts.st_mode)) {
      close(descriptor_);
      throw BadFeed("'" + path_ + "' is not a regular file, and samples are read from any place in it");
    }
    bytes_ = static_cast<std::uint64_t>(facts.st_size);
    had_name_ = facts.st_nlink > 0;
  }
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(OpenFile&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        bytes_(other.bytes_),
        had_name_(other.had_name_) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  OpenFile& operator=(OpenFile&&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t bytes_when_opened() const noexcept { return bytes_; }

  // Reads whole or throws. The file is never mapped: touching a page that a shrunken file no longer
  // has raises SIGBUS, which no check beforehand can rule out, while a read just comes back short.
  void read(std::byte* to, std::size_t bytes, std::uint64_t offset) const {
    while (bytes > 0) {
      const ssize_t got = pread(descriptor_, to, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw SourceFailed("cannot read '" + path_ + "': " + words_of(errno));
      if (got == 0) throw SourceFailed(shrunk());
      to += got;
      bytes -= static_cast<std::size_t>(got);
      offset += static_cast<std::uint64_t>(got);
    }
  }

  void check_has(std::uint64_t bytes) const {
    struct stat facts{};
    if (fstat(descriptor_, &facts) != 0)
      throw SourceFailed("cannot look at '" + path_ + "': " + words_of(errno));
    if (static_cast<std::uint64_t>(facts.st_size) < bytes) throw SourceFailed(shrunk());
    if (had_name_ && facts.st_nlink == 0) {
      throw SourceFailed("'" + path_ + "' was deleted or replaced while it was fed from");
    }
  }

 private:
  [[nodiscard]] struct stat look() const {
    struct stat facts{};
    if (fstat(descriptor_, &facts) != 0) {
      const int error = errno;
      close(descriptor_);
      throw BadFeed("cannot look at '" + path_ + "': " + words_of(error));
    }
    return facts;
  }
  [[nodiscard]] std::string shrunk() const {
    return "'" + path_ + "' became shorter while it was fed from; it had " + std::to_string(bytes_) +
           " bytes";
  }

  std::string path_;
  int descriptor_;
  std::uint64_t bytes_ = 0;
  bool had_name_ = false;
};

class FileSource final : public Source {
 public:
  FileSource(OpenFile file, std::uint64_t offset, const SampleArray& array)
      : Source(array), file_(std::move(file)), offset_(offset), end_(offset + array.bytes()) {
    if (array.samples == 0) throw BadFeed("'" + file_.path() + "' has no samples");
    if (end_ > file_.bytes_when_opened()) {
      throw BadFeed("'" + file_.path() + "' has " + std::to_string(file_.bytes_when_opened()) +
                    " bytes, and its " + std::to_string(array.samples) + " samples would need " +
                    std::to_string(end_));
    }
  }

  [[nodiscard]] const std::byte* in_place(std::uint64_t /*sample*/) const noexcept override {
    return nullptr;
  }
  void read(std::uint64_t first, std::size_t samples, std::byte* to) const override {
    file_.read(to, samples * bytes_per_sample(), offset_ + first * bytes_per_sample());
  }
  void check_still_there() const override { file_.check_has(end_); }

 private:
  OpenFile file_;
  std::uint64_t offset_;
  std::uint64_t end_;
};

}  // namespace

std::unique_ptr<Source> source_in_raw_file(const std::string& path, std::uint64_t offset, SampleArray array) {
  OpenFile file(path);
  if (offset >= file.bytes_when_opened()) throw BadFeed("'" + path + "' ends before the samples begin");
  if (array.samples == 0) {
    const std::uint64_t left = file.bytes_when_opened() - offset;
    array.samples = left / array.bytes_per_sample();
    if (left % array.bytes_per_sample() != 0) {
      throw BadFeed("'" + path + "' does not hold whole samples of " +
                    std::to_string(array.bytes_per_sample()) +
                    " bytes; give the number of samples, or check the shape");
    }
  }
  return std::make_unique<FileSource>(std::move(file), offset, array);
}

}  // namespace fairlap::feed
