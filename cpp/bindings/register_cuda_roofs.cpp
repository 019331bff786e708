#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "bindings/register.hpp"
#include "cuda/device/device_facts.hpp"
#include "cuda/roofs/roof_trials.hpp"

namespace py = pybind11;
using namespace fairlap;

namespace {

// The names as Python has them: number type, instructions, capabilities from and to, operations of a round of
// a block, its threads, the device code, and that of its check with the sums of a thread.
using KernelRow =
    std::tuple<std::string, std::string, int, int, double, unsigned int, std::string, std::string, int>;

std::vector<KernelRow> kernels() {
  std::vector<KernelRow> rows;
  for (const cuda::RoofKernel& kernel : cuda::all_roof_kernels()) {
    rows.emplace_back(kernel.number_type, kernel.instructions, kernel.least_capability,
                      kernel.most_capability, kernel.operations_of_a_round(), kernel.threads_of_a_block(),
                      cuda::code_of(kernel), cuda::check_code_of(kernel), kernel.sums());
  }
  return rows;
}

std::size_t free_bytes(const cuda::OwnStream& stream) {
  const cuda::Driver& driver = stream.context().driver();
  const cuda::CurrentContext current(driver, stream.context().handle());
  std::size_t free = 0;
  std::size_t total = 0;
  driver.cuMemGetInfo(&free, &total);
  return free;
}

}  // namespace

void register_cuda_roofs(py::module_& module) {
  using Facts = cuda::DeviceFacts;
  py::class_<Facts>(module, "DeviceFacts", "What the driver knows of a device that need not be in use.")
      .def_readonly("name", &Facts::name)
      .def_readonly("capability", &Facts::capability, "10 * major + minor")
      .def_readonly("cache_bytes", &Facts::cache_bytes, "of its L2 cache")
      .def_readonly("multiprocessors", &Facts::multiprocessors)
      .def_readonly("driver_cuda_version", &Facts::driver_cuda_version)
      .def_property_readonly("pci_bus_id", [](const Facts& self) { return self.identity.pci_bus_id; })
      .def_property_readonly("uuid", [](const Facts& self) { return self.identity.uuid; });
  module.def(
      "cuda_device_facts",
      [](int device) {
        const py::gil_scoped_release no_lock;
        return cuda::facts_of(cuda::Driver::of_this_process(), device);
      },
      py::arg("device"), "Starts the driver and no device.");
  py::class_<cuda::DeviceTrials>(module, "DeviceRoofTrials",
                                 "Trials of the fastest kernel on a whole device.")
      .def_property_readonly("instructions", &cuda::DeviceTrials::instructions)
      .def("rates", &cuda::DeviceTrials::rates, py::arg("seconds"), py::call_guard<py::gil_scoped_release>(),
           "The operations or bytes per second of each trial.");
  module.def(
      "device_arithmetic_trials",
      [](const cuda::OwnStream& stream, const std::string& number_type, int capability) {
        return std::make_unique<cuda::DeviceTrials>(stream, cuda::roof_kernels(number_type, capability));
      },
      py::keep_alive<0, 1>(), py::arg("stream"), py::arg("number_type"), py::arg("capability"),
      py::call_guard<py::gil_scoped_release>());
  module.def(
      "device_triad_trials",
      [](const cuda::OwnStream& stream, std::size_t bytes) {
        return std::make_unique<cuda::DeviceTrials>(stream, bytes);
      },
      py::keep_alive<0, 1>(), py::arg("stream"), py::arg("bytes"), py::call_guard<py::gil_scoped_release>());
  module.def(
      "has_device_arithmetic",
      [](const std::string& number_type, int capability) {
        return !cuda::roof_kernels(number_type, capability).empty();
      },
      py::arg("number_type"), py::arg("capability"));
  module.def(
      "device_arithmetic_ptx",
      [](const std::string& number_type, int capability) {
        std::string newest;
        for (const cuda::RoofKernel& kernel : cuda::roof_kernels(number_type, capability))
          newest = std::max(newest, std::string(kernel.ptx_version));
        return newest;
      },
      py::arg("number_type"), py::arg("capability"),
      "The version of PTX that all its kernels need; empty where there are none.");
  module.def(
      "is_device_arithmetic_unproven",
      [](const std::string& number_type, int capability) {
        const std::vector<cuda::RoofKernel> kernels = cuda::roof_kernels(number_type, capability);
        return std::any_of(kernels.begin(), kernels.end(),
                           [](const cuda::RoofKernel& kernel) { return kernel.is_unproven; });
      },
      py::arg("number_type"), py::arg("capability"),
      "Whether a kernel for it could break the context, so that another process should try it first.");
  module.def("device_free_bytes", &free_bytes, py::arg("stream"), "Of its device's memory.");
  module.def(
      "device_roof_kernels", &kernels,
      "Every kernel for arithmetic, for tests: number type, instructions, capabilities from and to, "
      "operations of a round of a block, its threads, device code, that of its check, sums of a thread.");
  module.def("device_triad_code", [] { return cuda::kTriadRoofCode; }, "For tests.");
}
