#pragma once

#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <string>

#include "cuda/stream/stream_run.hpp"

namespace fairlap::bindings {

// A finished run with what the callable raised, if it did.
struct StreamRecordView {
  std::shared_ptr<cuda::StreamRecord> record;
  pybind11::object exception = pybind11::none();
};

// Only what could be measured: absent is never 0.
std::map<std::string, double> figures_of(const cuda::DeviceFloor& floor);

void register_cuda_record(pybind11::module_& module);

}  // namespace fairlap::bindings
