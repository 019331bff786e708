#include "cuda/driver/shared_library.hpp"

#include <dlfcn.h>

namespace fairlap::cuda {

std::optional<SharedLibrary> SharedLibrary::open(const std::vector<std::string>& candidates,
                                                 std::string& why_not) {
  why_not.clear();
  for (const std::string& candidate : candidates) {
    if (void* handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL))
      return SharedLibrary(handle, candidate);
    const char* text = ::dlerror();
    if (!why_not.empty()) why_not += "; ";
    why_not += text != nullptr ? text : candidate + ": cannot be opened";
  }
  return std::nullopt;
}

std::optional<SharedLibrary> SharedLibrary::already_loaded(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD)) return SharedLibrary(handle, name);
  }
  return std::nullopt;
}

void* SharedLibrary::symbol(const char* name) const noexcept { return ::dlsym(handle_, name); }

}  // namespace fairlap::cuda
