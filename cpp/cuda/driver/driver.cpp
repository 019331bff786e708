#include "cuda/driver/driver.hpp"

#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "cuda/driver/shared_library.hpp"

namespace fairlap::cuda {
namespace {

// Looks functions up in the way this driver offers: by version where it can (CUDA 11.3 and later), else by
// exported name, which carries the version as its ending.
class Lookup {
 public:
  explicit Lookup(const SharedLibrary& library)
      : library_(library),
        newer_(reinterpret_cast<PFN_cuGetProcAddress_v2>(library.symbol("cuGetProcAddress_v2"))),
        older_(reinterpret_cast<PFN_cuGetProcAddress>(library.symbol("cuGetProcAddress"))) {}

  void* find(const char* name, const char* exported, int release, std::string& why_not) const {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult code = CUDA_SUCCESS;
    if (newer_ != nullptr) {
      code = newer_(name, &found, release, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
    } else if (older_ != nullptr) {
      code = older_(name, &found, release, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    } else {
      found = library_.symbol(exported);
    }
    if (code == CUDA_SUCCESS && found != nullptr) return found;
    const std::string needed = std::to_string(release / 1000) + "." + std::to_string(release % 1000 / 10);
    why_not = status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT || code == CUDA_SUCCESS ||
                      code == CUDA_ERROR_NOT_FOUND || code == CUDA_ERROR_INVALID_VALUE
                  ? std::string(name) + " needs a driver for CUDA " + needed + " or later"
                  : std::string(name) + " could not be looked up: error " + std::to_string(code);
    return nullptr;
  }

 private:
  const SharedLibrary& library_;
  PFN_cuGetProcAddress_v2 newer_;
  PFN_cuGetProcAddress older_;
};

struct ProcessDriver {
  Driver::Opened opened = Driver::open();
  ::pid_t owner = ::getpid();
};

ProcessDriver& process_driver() {
  static ProcessDriver driver;
  return driver;
}

}  // namespace

Driver::Opened Driver::open() {
  const char* chosen = std::getenv("FAIRLAP_LIBCUDA");
  const std::string name = chosen != nullptr && *chosen != '\0' ? chosen : "libcuda.so.1";
  std::string why_not;
  const auto library = SharedLibrary::open({name}, why_not);
  if (!library) return {nullptr, name + " could not be loaded: " + why_not};

  std::unique_ptr<Driver> driver(new Driver());
  driver->path_ = library->path();
  const Lookup lookup(*library);
  std::string missing;
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are names.
#define FAIRLAP_FIND(member, exported, release, required)                        \
  driver->member.pointer_ = reinterpret_cast<PFN_##exported>(                    \
      lookup.find(#member, #exported, release, driver->member.absent_because_)); \
  if (required && !driver->member.present() && missing.empty()) missing = driver->member.absent_because_;
  FAIRLAP_DRIVER_FUNCTIONS(FAIRLAP_FIND)
#undef FAIRLAP_FIND
  // NOLINTEND(bugprone-macro-parentheses)
  if (!missing.empty()) return {nullptr, name + " is too old or not a CUDA driver: " + missing};

  if (const CUresult code = driver->cuInit.code_of(0u); code != CUDA_SUCCESS) {
    return {nullptr, driver->error("cuInit", code).what()};
  }
  if (const CUresult code = driver->cuDriverGetVersion.code_of(&driver->version_); code != CUDA_SUCCESS) {
    return {nullptr, driver->error("cuDriverGetVersion", code).what()};
  }
  return {std::move(driver), ""};
}

const Driver& Driver::of_this_process() {
  const ProcessDriver& process = process_driver();
  if (!process.opened.driver) throw Unavailable(process.opened.absent_because);
  if (process.owner != ::getpid()) {
    throw Unavailable("CUDA does not work in a child made by fork; start the process with spawn instead");
  }
  return *process.opened.driver;
}

std::string Driver::absent_because() { return process_driver().opened.absent_because; }

CudaError Driver::error(const char* function, CUresult code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName.code_of(code, &name) != CUDA_SUCCESS) name = nullptr;
  if (cuGetErrorString.code_of(code, &text) != CUDA_SUCCESS) text = nullptr;
  return CudaError(function, code, name != nullptr ? name : "", text != nullptr ? text : "");
}

}  // namespace fairlap::cuda
