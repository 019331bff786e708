#pragma once

#include <span>

#include "telemetry/nvml/nvml_library.hpp"
#include "telemetry/sampling/source.hpp"

namespace fairlap::telemetry {

// One of NVML's numbered field values, which carry a timestamp and a status of their own.
struct NvmlFieldValue {
  unsigned int id;
  const char* name;
  double scale;
  FieldKind kind;
  Lane lane;
  int since_cuda;  // of the driver: the number meant something else, or nothing, before
};
std::span<const NvmlFieldValue> nvml_field_values();

// One function of NVML's that gives one or two numbers. It steps in for a field value of the same name that
// the device lacks.
struct NvmlGetter {
  static constexpr int kMostValues = 2;
  const char* names[kMostValues];
  FieldKind kind;
  Lane lane;
  nvmlReturn_t (*read)(const NvmlFunctions&, nvmlDevice_t, double* values);
};
std::span<const NvmlGetter> nvml_getters();

double value_of(const nvmlFieldValue_t& field) noexcept;

}  // namespace fairlap::telemetry
