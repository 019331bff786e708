#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fairlap::cuda {

// A library opened at run time and never closed: frameworks in the same process may share it, and
// NVIDIA's libraries do not survive being unloaded.
class SharedLibrary {
 public:
  // Opens the first candidate that can be opened, or reports why none could. A candidate without a slash
  // is looked for by the system's linker.
  static std::optional<SharedLibrary> open(const std::vector<std::string>& candidates, std::string& why_not);

  // The same library when something in this process has loaded it already.
  static std::optional<SharedLibrary> already_loaded(const std::vector<std::string>& names);

  [[nodiscard]] void* symbol(const char* name) const noexcept;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

}  // namespace fairlap::cuda
