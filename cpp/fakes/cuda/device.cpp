#include <cstdio>
#include <cstring>
#include <string>

#include "fakes/cuda/entry.hpp"

// Initialisation, versions, errors and what the devices are.
namespace fairlap::fakes {
namespace {

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};
#define FAKE_ERROR(code) {code, #code, "the fake driver reports " #code}
constexpr ErrorText kErrors[] = {
    FAKE_ERROR(CUDA_SUCCESS),
    FAKE_ERROR(CUDA_ERROR_INVALID_VALUE),
    FAKE_ERROR(CUDA_ERROR_OUT_OF_MEMORY),
    FAKE_ERROR(CUDA_ERROR_NOT_INITIALIZED),
    FAKE_ERROR(CUDA_ERROR_DEINITIALIZED),
    FAKE_ERROR(CUDA_ERROR_STUB_LIBRARY),
    FAKE_ERROR(CUDA_ERROR_NO_DEVICE),
    FAKE_ERROR(CUDA_ERROR_INVALID_DEVICE),
    FAKE_ERROR(CUDA_ERROR_INVALID_CONTEXT),
    FAKE_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU),
    FAKE_ERROR(CUDA_ERROR_ECC_UNCORRECTABLE),
    FAKE_ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT),
    FAKE_ERROR(CUDA_ERROR_JIT_COMPILER_NOT_FOUND),
    FAKE_ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED),
    FAKE_ERROR(CUDA_ERROR_INVALID_PTX),
    FAKE_ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
    FAKE_ERROR(CUDA_ERROR_INVALID_HANDLE),
    FAKE_ERROR(CUDA_ERROR_ILLEGAL_STATE),
    FAKE_ERROR(CUDA_ERROR_NOT_FOUND),
    FAKE_ERROR(CUDA_ERROR_NOT_READY),
    FAKE_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS),
    FAKE_ERROR(CUDA_ERROR_ASSERT),
    FAKE_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    FAKE_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT),
    FAKE_ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED),
    FAKE_ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED),
    FAKE_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED),
    FAKE_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED),
    FAKE_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED),
    FAKE_ERROR(CUDA_ERROR_LAUNCH_FAILED),
    FAKE_ERROR(CUDA_ERROR_NOT_PERMITTED),
    FAKE_ERROR(CUDA_ERROR_NOT_SUPPORTED),
    FAKE_ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH),
    FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
    FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
    FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE),
    FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED),
    FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED),
    FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION),
    FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT),
    FAKE_ERROR(CUDA_ERROR_CAPTURED_EVENT),
    FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD),
    FAKE_ERROR(CUDA_ERROR_UNKNOWN),
};
#undef FAKE_ERROR

CUresult give_text(const char* function, CUresult code, const char** text,
                   const char* const ErrorText::* part) {
  return entry(function, Needs::nothing, [&](World&, Lock&) -> CUresult {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *text = nullptr;
    for (const ErrorText& error : kErrors) {
      if (error.code == code) *text = error.*part;
    }
    return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

bool exists(const World& w, CUdevice device) {
  return device >= 0 && static_cast<std::size_t>(device) < w.devices.size();
}

CUresult give_string(char* out, int length, const std::string& text) {
  if (out == nullptr || length <= static_cast<int>(text.size())) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return CUDA_SUCCESS;
}

}  // namespace

FAKE_EXPORT CUresult cuInit(unsigned int flags) {
  return entry("cuInit", Needs::nothing, [&](World& w, Lock&) -> CUresult {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (w.devices.empty()) return CUDA_ERROR_NO_DEVICE;
    w.initialised = true;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuDriverGetVersion(int* version) {
  return entry("cuDriverGetVersion", Needs::nothing, [&](World& w, Lock&) -> CUresult {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = w.driver_version;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuGetErrorName(CUresult code, const char** name) {
  return give_text("cuGetErrorName", code, name, &ErrorText::name);
}

FAKE_EXPORT CUresult cuGetErrorString(CUresult code, const char** text) {
  return give_text("cuGetErrorString", code, text, &ErrorText::text);
}

FAKE_EXPORT CUresult cuDeviceGetCount(int* count) {
  return entry("cuDeviceGetCount", [&](World& w, Lock&) -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(w.devices.size());
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return entry("cuDeviceGet", [&](World& w, Lock&) -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!exists(w, ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return entry("cuDeviceGetName", [&](World& w, Lock&) -> CUresult {
    if (!exists(w, device)) return CUDA_ERROR_INVALID_DEVICE;
    return give_string(name, length, "fairlap fake device " + std::to_string(device));
  });
}

FAKE_EXPORT CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  return entry("cuDeviceGetPCIBusId", [&](World& w, Lock&) -> CUresult {
    if (!exists(w, device)) return CUDA_ERROR_INVALID_DEVICE;
    char id[32];
    const Device& found = w.devices[static_cast<std::size_t>(device)];
    std::snprintf(id, sizeof id, "0000:%02X:00.0", static_cast<unsigned>(found.slot) + 1U);
    return give_string(text, length, id);
  });
}

FAKE_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* out, CUdevice device) {
  return entry("cuDeviceGetUuid_v2", [&](World& w, Lock&) -> CUresult {
    if (!exists(w, device)) return CUDA_ERROR_INVALID_DEVICE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Device& found = w.devices[static_cast<std::size_t>(device)];
    char own[33];
    std::snprintf(own, sizeof own, "%032d", found.slot);
    std::string digits = found.uuid.empty() ? own : found.uuid;
    std::erase(digits, '-');
    if (digits.size() != 2 * sizeof out->bytes) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t byte = 0; byte < sizeof out->bytes; ++byte) {
      out->bytes[byte] = static_cast<char>(std::stoi(digits.substr(2 * byte, 2), nullptr, 16));
    }
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return entry("cuDeviceGetAttribute", [&](World& w, Lock&) -> CUresult {
    if (!exists(w, device)) return CUDA_ERROR_INVALID_DEVICE;
    constexpr int kLastAttribute = 200;  // beyond those of any driver so far
    if (value == nullptr || attribute < 1 || attribute > kLastAttribute) return CUDA_ERROR_INVALID_VALUE;
    const auto& attributes = w.devices[static_cast<std::size_t>(device)].attributes;
    const auto found = attributes.find(attribute);
    *value = found == attributes.end() ? 0 : found->second;
    return CUDA_SUCCESS;
  });
}

}  // namespace fairlap::fakes
