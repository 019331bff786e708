#include <pybind11/pybind11.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "bindings/register.hpp"
#include "cuda/sharing/device_copies.hpp"
#include "cuda/sharing/shared_pages.hpp"

namespace py = pybind11;
using namespace fairlap;

namespace {

py::buffer_info contiguous(const py::buffer& buffer, bool writable) {
  py::buffer_info info = buffer.request(writable);
  py::ssize_t expected = info.itemsize;
  for (py::ssize_t axis = info.ndim; axis-- > 0; expected *= info.shape[static_cast<std::size_t>(axis)]) {
    const auto at = static_cast<std::size_t>(axis);
    if (info.shape[at] > 1 && info.strides[at] != expected)
      throw std::invalid_argument("the memory is not contiguous");
  }
  return info;
}

std::size_t nbytes(const py::buffer_info& info) {
  return static_cast<std::size_t>(info.size * info.itemsize);
}

void upload(cuda::DeviceCopies& self, std::uintptr_t to, const py::buffer& from) {
  const py::buffer_info info = contiguous(from, false);
  const py::gil_scoped_release no_lock;
  self.upload(to, info.ptr, nbytes(info));
}

void download(cuda::DeviceCopies& self, const py::buffer& to, std::uintptr_t from) {
  const py::buffer_info info = contiguous(to, true);
  const py::gil_scoped_release no_lock;
  self.download(info.ptr, from, nbytes(info));
}

py::bytes exported(const cuda::DevicePages& pages) {
  const cuda::CUipcMemHandle handle = pages.exported();
  return {handle.reserved, sizeof handle.reserved};
}

std::unique_ptr<cuda::OpenedPages> opened(const cuda::DeviceCopies& copies, const py::bytes& given) {
  const auto text = given.cast<std::string>();
  cuda::CUipcMemHandle handle{};
  if (text.size() != sizeof handle.reserved)
    throw std::invalid_argument("this is no handle of shared memory");
  std::memcpy(handle.reserved, text.data(), text.size());
  return std::make_unique<cuda::OpenedPages>(copies.context(), handle);
}

}  // namespace

void register_cuda_sharing(py::module_& module) {
  py::class_<cuda::DeviceCopies>(module, "DeviceCopies",
                                 "Copies of a device's memory, each of which has ended when it returns.")
      .def(py::init([](int device) {
             return std::make_unique<cuda::DeviceCopies>(cuda::Driver::of_this_process(), device);
           }),
           py::arg("device"))
      .def(
          "require_sharing", [](const cuda::DeviceCopies& self) { cuda::require_sharing(self.context()); },
          "Raise CudaUnavailable where two processes share no memory of the device.")
      .def("within", &cuda::DeviceCopies::within, py::arg("to"), py::arg("from_"), py::arg("nbytes"),
           py::call_guard<py::gil_scoped_release>())
      .def("upload", &upload, py::arg("to"), py::arg("from_"))
      .def("download", &download, py::arg("to"), py::arg("from_"))
      .def("fill", &cuda::DeviceCopies::fill, py::arg("to"), py::arg("word"), py::arg("words"),
           py::call_guard<py::gil_scoped_release>())
      .def("longest_pause_ns", &cuda::DeviceCopies::longest_pause_ns, py::arg("ns"),
           py::call_guard<py::gil_scoped_release>(),
           "How long a kernel of this process was paused at most, while it looked for so long.");
  py::class_<cuda::DevicePages>(module, "DevicePages", "Whole blocks of a device's memory.")
      .def(py::init([](const cuda::DeviceCopies& copies, std::size_t wanted) {
             return std::make_unique<cuda::DevicePages>(copies.context(), wanted);
           }),
           py::keep_alive<1, 2>(), py::arg("copies"), py::arg("nbytes"))
      .def_property_readonly("address", &cuda::DevicePages::address)
      .def_property_readonly("nbytes", &cuda::DevicePages::bytes)
      .def("exported", &exported, "The handle by which other processes open it.");
  py::class_<cuda::OpenedPages>(module, "OpenedPages", "Memory of a device that another process exported.")
      .def(py::init(&opened), py::keep_alive<1, 2>(), py::arg("copies"), py::arg("handle"))
      .def_property_readonly("address", &cuda::OpenedPages::handle);
}
