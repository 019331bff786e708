#include <limits>
#include <type_traits>

#include "fakes/nvml/entry.hpp"

// Starting and ending, and which devices there are.
namespace fairlap::fakes {
namespace {

template <class Matches>
nvmlReturn_t find_board(const Machine& m, nvmlDevice_t* out, nvmlReturn_t otherwise, Matches matches) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned int index = 0;
  for (const Board& board : m.boards) {
    if (board.unplugged) continue;
    const unsigned int own = board.listed() ? index++ : std::numeric_limits<unsigned int>::max();
    if (matches(board, own)) {
      *out = handle_of(board);
      return NVML_SUCCESS;
    }
  }
  return otherwise;
}

struct Named {
  nvmlReturn_t code;
  const char* text;
};
#define FAKE_NAMED(code) {code, "the fake NVML reports " #code}
constexpr Named kTexts[] = {
    FAKE_NAMED(NVML_SUCCESS),
    FAKE_NAMED(NVML_ERROR_UNINITIALIZED),
    FAKE_NAMED(NVML_ERROR_INVALID_ARGUMENT),
    FAKE_NAMED(NVML_ERROR_NOT_SUPPORTED),
    FAKE_NAMED(NVML_ERROR_NO_PERMISSION),
    FAKE_NAMED(NVML_ERROR_NOT_FOUND),
    FAKE_NAMED(NVML_ERROR_INSUFFICIENT_SIZE),
    FAKE_NAMED(NVML_ERROR_DRIVER_NOT_LOADED),
    FAKE_NAMED(NVML_ERROR_TIMEOUT),
    FAKE_NAMED(NVML_ERROR_GPU_IS_LOST),
    FAKE_NAMED(NVML_ERROR_LIB_RM_VERSION_MISMATCH),
};
#undef FAKE_NAMED

}  // namespace

// Compiles only when each function has the very type that nvml_abi.hpp declares.
#define FAKE_SAME_TYPE(function) \
  static_assert(std::is_same_v<decltype(&fairlap::telemetry::function), PFN_##function>)
FAKE_SAME_TYPE(nvmlInit_v2);
FAKE_SAME_TYPE(nvmlShutdown);
FAKE_SAME_TYPE(nvmlErrorString);
FAKE_SAME_TYPE(nvmlSystemGetDriverVersion);
FAKE_SAME_TYPE(nvmlSystemGetCudaDriverVersion_v2);
FAKE_SAME_TYPE(nvmlDeviceGetCount_v2);
FAKE_SAME_TYPE(nvmlDeviceGetHandleByIndex_v2);
FAKE_SAME_TYPE(nvmlDeviceGetHandleByUUID);
FAKE_SAME_TYPE(nvmlDeviceGetHandleByPciBusId_v2);
FAKE_SAME_TYPE(nvmlDeviceGetName);
FAKE_SAME_TYPE(nvmlDeviceGetUUID);
FAKE_SAME_TYPE(nvmlDeviceGetPciInfo_v3);
FAKE_SAME_TYPE(nvmlDeviceGetMigMode);
#undef FAKE_SAME_TYPE

#pragma GCC visibility push(default)
extern "C" {

nvmlReturn_t nvmlInit_v2() {
  return entry("nvmlInit_v2", Needs::nothing, [](Machine& m) -> nvmlReturn_t {
    ++m.inits;
    return NVML_SUCCESS;
  });
}

// nvidia-ml-py calls this one.
nvmlReturn_t nvmlInitWithFlags(unsigned int) {
  return entry("nvmlInitWithFlags", Needs::nothing, [](Machine& m) -> nvmlReturn_t {
    ++m.inits;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlShutdown() {
  return entry("nvmlShutdown", Needs::init, [](Machine& m) -> nvmlReturn_t {
    --m.inits;
    return NVML_SUCCESS;
  });
}

const char* nvmlErrorString(nvmlReturn_t code) {
  for (const Named& each : kTexts) {
    if (each.code == code) return each.text;
  }
  return "the fake NVML reports an unknown error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* out, unsigned int length) {
  return entry("nvmlSystemGetDriverVersion", Needs::init,
               [&](Machine& m) { return give_text(m.driver_version, out, length); });
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* out) {
  return entry("nvmlSystemGetCudaDriverVersion_v2", Needs::init,
               [&](Machine& m) { return give(out, static_cast<std::uint64_t>(m.cuda_version)); });
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* out) {
  return entry("nvmlDeviceGetCount_v2", Needs::init, [&](Machine& m) {
    std::uint64_t listed = 0;
    for (const Board& board : m.boards) listed += board.listed() ? 1U : 0U;
    return give(out, listed);
  });
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int wanted, nvmlDevice_t* out) {
  return entry("nvmlDeviceGetHandleByIndex_v2", Needs::init, [&](Machine& m) {
    return find_board(m, out, NVML_ERROR_INVALID_ARGUMENT,
                      [wanted](const Board&, unsigned int index) { return index == wanted; });
  });
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* wanted, nvmlDevice_t* out) {
  return entry("nvmlDeviceGetHandleByUUID", Needs::init, [&](Machine& m) {
    return find_board(m, out, NVML_ERROR_NOT_FOUND, [wanted](const Board& board, unsigned int) {
      return wanted != nullptr && board.uuid == wanted;
    });
  });
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* wanted, nvmlDevice_t* out) {
  return entry("nvmlDeviceGetHandleByPciBusId_v2", Needs::init, [&](Machine& m) -> nvmlReturn_t {
    if (wanted == nullptr || std::strlen(wanted) < 12) return NVML_ERROR_INVALID_ARGUMENT;
    // Domains are written with four digits or eight; the longer one ends in the shorter.
    return find_board(m, out, NVML_ERROR_NOT_FOUND, [wanted](const Board& board, unsigned int) {
      return board.listed() && board.pci_bus_id.ends_with(wanted);
    });
  });
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* out, unsigned int length) {
  return on_board("nvmlDeviceGetName", device,
                  [&](Machine&, const Board& board) { return give_text(board.name, out, length); });
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* out, unsigned int length) {
  return on_board("nvmlDeviceGetUUID", device,
                  [&](Machine&, const Board& board) { return give_text(board.uuid, out, length); });
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* now, unsigned int* pending) {
  return on_board("nvmlDeviceGetMigMode", device, [&](Machine& m, const Board& board) -> nvmlReturn_t {
    if (!m.has_mig) return NVML_ERROR_NOT_SUPPORTED;  // as on boards that are no data-centre ones
    if (now == nullptr || pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *now = *pending = board.mig ? 1U : 0U;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* out) {
  return on_board("nvmlDeviceGetPciInfo_v3", device, [&](Machine&, const Board& board) -> nvmlReturn_t {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *out = {};
    out->bus = static_cast<unsigned int>(board.number) + 1U;
    give_text(board.pci_bus_id, out->busId, sizeof out->busId);
    return give_text(board.pci_bus_id.substr(4), out->busIdLegacy, sizeof out->busIdLegacy);
  });
}

}  // extern "C"
#pragma GCC visibility pop
}  // namespace fairlap::fakes
