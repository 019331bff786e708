#include "cuda/sharing/shared_pages.hpp"

#include <string>

namespace fairlap::cuda {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{2} << 20U;
constexpr unsigned int kLazyPeerAccess = 1;  // the only flag there is, and it is not optional
constexpr int kOneProcessAtATime = 3;        // of the compute modes

std::size_t whole_blocks(std::size_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

}  // namespace

void require_sharing(const BorrowedContext& context) {
  int mode = 0;
  context.driver().cuDeviceGetAttribute(&mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, context.device());
  if (mode == kOneProcessAtATime) {
    throw Unavailable("the device is in the compute mode EXCLUSIVE_PROCESS, which lets one process use it");
  }
  try {
    static_cast<void>(DevicePages(context, kBlockBytes).exported());
  } catch (const CudaError& error) {
    throw Unavailable(std::string("two processes cannot share memory of the device: ") + error.what());
  }
}

DevicePages::DevicePages(const BorrowedContext& context, std::size_t bytes)
    : driver_(context.driver()), context_(context.handle()), memory_(context, whole_blocks(bytes)) {}

CUipcMemHandle DevicePages::exported() const {
  const CurrentContext current(driver_, context_);
  CUipcMemHandle handle{};
  driver_.cuIpcGetMemHandle(&handle, memory_.handle());
  return handle;
}

OpenedPages::OpenedPages(const BorrowedContext& context, const CUipcMemHandle& exported) : Owned(context) {
  make([&exported](const Driver& driver, CUdeviceptr& memory) {
    driver.cuIpcOpenMemHandle(&memory, exported, kLazyPeerAccess);
  });
}

OpenedPages::~OpenedPages() {
  destroy(
      [](const Driver& driver, CUdeviceptr memory) { return driver.cuIpcCloseMemHandle.code_of(memory); });
}

}  // namespace fairlap::cuda
