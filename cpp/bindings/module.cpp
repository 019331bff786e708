#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include "bindings/register.hpp"

namespace py = pybind11;

namespace {

// Python 3.11 has no __buffer__ by which a stub could tell that a class offers its memory.
py::list buffer_classes(const py::module_& module) {
  py::list names;
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    if (!py::isinstance<py::type>(value)) continue;
    const auto* const type = reinterpret_cast<const PyTypeObject*>(value.ptr());
    if (type->tp_as_buffer != nullptr && type->tp_as_buffer->bf_getbuffer != nullptr) names.append(name);
  }
  return names;
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "fairlap's engine. Use it through fairlap.engine.";
  module.attr("__version__") = FAIRLAP_VERSION;
  register_clock(module);
  register_loop(module);
  register_cuda(module);
  register_cuda_streams(module);
  register_cuda_activity(module);
  register_cuda_roofs(module);
  register_copy_trials(module);
  register_cuda_sharing(module);
  register_telemetry(module);
  register_feed(module);
  register_generation(module);
  register_load(module);
  register_roofs(module);
  module.def("buffer_classes", [module]() -> py::typing::List<py::str> { return buffer_classes(module); });
}
