#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/register.hpp"
#include "cuda/activity/stream_watch.hpp"
#include "cuda/device/loaded_kernel.hpp"
#include "cuda/sampling/cold_cache.hpp"
#include "cuda/stream/device_wait.hpp"
#include "cuda/stream/own_stream.hpp"

namespace py = pybind11;
using namespace fairlap;

namespace {

using Launches = std::map<std::uintptr_t, std::size_t>;

Launches launches_during(const py::typing::Callable<py::object()>& call, int device,
                         const std::vector<std::string>& cupti_places) {
  const cuda::Driver& driver = cuda::Driver::of_this_process();
  const cuda::Cupti& cupti = cuda::Cupti::of_this_process(cupti_places);
  const cuda::DeviceWait device_wait(driver, device);
  const cuda::BorrowedContext context = cuda::BorrowedContext::of_device(driver, device);
  const cuda::StreamWatch watch(cupti, context);
  call();
  {
    const py::gil_scoped_release no_lock;  // A framework may launch from its own threads after the call.
    device_wait.wait();
  }
  return watch.launches();
}

std::vector<cuda::KernelArgument> arguments_in(const py::typing::List<py::object>& given) {
  std::vector<cuda::KernelArgument> arguments;
  for (const py::handle each : given) {
    if (py::isinstance<py::bytes>(each)) {
      arguments.emplace_back(each.cast<std::string>());
    } else {
      arguments.emplace_back(each.cast<std::size_t>());
    }
  }
  return arguments;
}

void launch(void* kernel) { static_cast<cuda::LoadedKernel*>(kernel)->launch(); }
void wait(void* kernel) { static_cast<const cuda::LoadedKernel*>(kernel)->wait(); }

}  // namespace

void register_cuda_streams(py::module_& module) {
  py::class_<cuda::DeviceWait>(module, "DeviceWait", "Waits until a device has done all of its work.")
      .def(py::init([](int device) {
             return std::make_unique<cuda::DeviceWait>(cuda::Driver::of_this_process(), device);
           }),
           py::arg("device"))
      .def(
          "__call__",
          [](const cuda::DeviceWait& self, const py::object& /*result*/) {
            const py::gil_scoped_release no_lock;
            self.wait();
          },
          py::arg("result") = py::none())
      .def_property_readonly("device", &cuda::DeviceWait::device);
  py::class_<cuda::ColdCache>(module, "ColdCache", "Makes the L2 cache of an idle device cold.")
      .def(py::init([](int device) {
             return std::make_unique<cuda::ColdCache>(cuda::Driver::of_this_process(), device);
           }),
           py::arg("device"))
      .def("__call__",
           [](cuda::ColdCache& self) {
             const py::gil_scoped_release no_lock;
             self.make_cold();
           })
      .def_property_readonly("flush_bytes", &cuda::ColdCache::flush_bytes)
      .def_property_readonly("cache_bytes", &cuda::ColdCache::cache_bytes)
      .def_property_readonly("resets_persisting", &cuda::ColdCache::resets_persisting);
  py::class_<cuda::OwnStream>(module, "OwnStream", "A stream in the primary context of a device.")
      .def(py::init([](int device) {
             return std::make_unique<cuda::OwnStream>(cuda::Driver::of_this_process(), device);
           }),
           py::arg("device"))
      .def_property_readonly("address", &cuda::OwnStream::address)
      .def("__cuda_stream__",
           [](const cuda::OwnStream& self) { return std::pair<int, std::uintptr_t>(0, self.address()); });
  module.def("launches_during", &launches_during, py::arg("call"), py::kw_only(), py::arg("device"),
             py::arg("cupti_places"),
             "How many kernels and graphs were launched on each stream during one call, by its address.");
  py::class_<cuda::LoadedKernel>(module, "LoadedKernel", "A kernel of a PTX or cubin image.")
      .def(py::init([](const cuda::OwnStream& stream, const py::bytes& image, const std::string& name,
                       std::array<unsigned int, 3> grid, std::array<unsigned int, 3> block,
                       unsigned int shared_bytes, const py::typing::List<py::object>& arguments) {
             return std::make_unique<cuda::LoadedKernel>(
                 stream, image.cast<std::string>(), name,
                 cuda::LaunchShape{.grid = grid, .block = block, .shared_bytes = shared_bytes},
                 arguments_in(arguments));
           }),
           py::keep_alive<1, 2>(), py::arg("stream"), py::arg("image"), py::arg("name"), py::kw_only(),
           py::arg("grid"), py::arg("block"), py::arg("shared_bytes"), py::arg("arguments"))
      .def("enter", &cuda::LoadedKernel::enter, "Make its context current on this thread.")
      .def("leave", &cuda::LoadedKernel::leave)
      .def_property_readonly("context",
                             [](cuda::LoadedKernel& self) { return reinterpret_cast<std::uintptr_t>(&self); })
      .def_property_readonly(
          "launch_address",
          [](const cuda::LoadedKernel& /*self*/) { return reinterpret_cast<std::uintptr_t>(&launch); })
      .def_property_readonly("wait_address", [](const cuda::LoadedKernel& /*self*/) {
        return reinterpret_cast<std::uintptr_t>(&wait);
      });
}
