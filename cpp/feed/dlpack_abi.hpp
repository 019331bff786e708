#pragma once

#include <cstddef>
#include <cstdint>

// The memory layout of DLPack's structures, as consumers expect it; both generations. Written from the
// published specification (version 1.0), of which only what is exported here is declared.
namespace fairlap::feed::dlpack {

constexpr std::int32_t kDeviceCpu = 1;
constexpr std::int32_t kDeviceCuda = 2;

enum TypeCode : std::uint8_t { code_int = 0, code_uint = 1, code_float = 2, code_bfloat = 4, code_bool = 6 };

struct Device {
  std::int32_t type = kDeviceCpu;
  std::int32_t id = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

struct DataType {
  std::uint8_t code = 0;
  std::uint8_t bits = 0;
  std::uint16_t lanes = 1;
};

struct Tensor {
  void* data = nullptr;
  Device device;
  std::int32_t dimensions = 0;
  DataType type;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  // in elements
  std::uint64_t byte_offset = 0;
};

// The first generation: capsules named "dltensor".
struct Managed {
  Tensor tensor;
  void* context = nullptr;
  void (*deleter)(Managed* self) = nullptr;
};

struct Version {
  std::uint32_t major = 1;
  std::uint32_t minor = 0;
};

// The second generation: capsules named "dltensor_versioned", for consumers that pass a max_version of 1 or
// more.
struct ManagedVersioned {
  Version version;
  void* context = nullptr;
  void (*deleter)(ManagedVersioned* self) = nullptr;
  std::uint64_t flags = 0;
  Tensor tensor;
};

static_assert(sizeof(void*) != 8 ||
              (sizeof(Tensor) == 48 && sizeof(Managed) == 64 && sizeof(ManagedVersioned) == 80));
static_assert(offsetof(Tensor, shape) == offsetof(Tensor, type) + 4 &&
              offsetof(ManagedVersioned, flags) == 24);

}  // namespace fairlap::feed::dlpack
