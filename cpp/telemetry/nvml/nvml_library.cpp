#include "telemetry/nvml/nvml_library.hpp"

#include <unistd.h>

#include <cstdlib>

#include "cuda/driver/shared_library.hpp"

namespace fairlap::telemetry {
namespace {

std::string library_name(const std::string& path) {
  if (!path.empty()) return path;
  const char* const chosen = std::getenv("FAIRLAP_LIBNVML");
  return chosen != nullptr && *chosen != '\0' ? chosen : "libnvidia-ml.so.1";
}

std::string described(const NvmlFunctions& functions, nvmlReturn_t code) {
  const char* const text = functions.nvmlErrorString != nullptr ? functions.nvmlErrorString(code) : nullptr;
  return (text != nullptr ? std::string(text) : std::string("NVML error")) + " (" + std::to_string(code) +
         ")";
}

}  // namespace

std::shared_ptr<NvmlSession> NvmlSession::open(const std::string& path, std::string& absent_because) {
  const std::string name = library_name(path);
  std::string why_not;
  const auto library = cuda::SharedLibrary::open({name}, why_not);
  if (!library) {
    absent_because = name + " could not be loaded: " + why_not;
    return nullptr;
  }
  NvmlFunctions found;
// NOLINTNEXTLINE(bugprone-macro-parentheses): the argument is a name.
#define FAIRLAP_FIND(function) found.function = reinterpret_cast<PFN_##function>(library->symbol(#function))
  FAIRLAP_NVML_FUNCTIONS(FAIRLAP_FIND);
#undef FAIRLAP_FIND
  if (found.nvmlInit_v2 == nullptr || found.nvmlShutdown == nullptr ||
      found.nvmlDeviceGetCount_v2 == nullptr || found.nvmlDeviceGetHandleByIndex_v2 == nullptr) {
    absent_because = name + " is too old, or it is not NVML: it cannot list devices";
    return nullptr;
  }
  if (const nvmlReturn_t code = found.nvmlInit_v2(); code != NVML_SUCCESS) {
    absent_because = "NVML does not start: " + described(found, code);
    return nullptr;
  }
  return std::shared_ptr<NvmlSession>(new NvmlSession(found));
}

NvmlSession::NvmlSession(const NvmlFunctions& functions)
    : functions_(functions), owner_process_(::getpid()) {}

NvmlSession::~NvmlSession() {
  // NVML is not to be used after a fork, and the parent's count is not the child's to lower.
  if (::getpid() == owner_process_) functions_.nvmlShutdown();
}

std::string NvmlSession::text_of(nvmlReturn_t code) const { return described(functions_, code); }

}  // namespace fairlap::telemetry
