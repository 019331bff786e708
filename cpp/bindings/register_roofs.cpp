#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/register.hpp"
#include "roofs/kernel.hpp"
#include "roofs/roof.hpp"
#include "roofs/trials.hpp"

namespace py = pybind11;
using namespace fairlap::roofs;

namespace {

// In the order from the narrowest to the widest.
std::vector<ArithmeticKernel> available_arithmetic(const std::string& number_type) {
  std::vector<ArithmeticKernel> found;
  for (const ArithmeticKernel& kernel : arithmetic_kernels()) {
    if (kernel.number_type == number_type && kernel.available()) found.push_back(kernel);
  }
  return found;
}

// Stores that bypass the caches would measure the memory, whatever the size of the arrays.
std::vector<TriadKernel> available_triads(bool in_caches) {
  std::vector<TriadKernel> found;
  for (const TriadKernel& kernel : triad_kernels()) {
    if (kernel.available() && !(in_caches && kernel.bypasses_caches)) found.push_back(kernel);
  }
  return found;
}

std::unique_ptr<Trials> arithmetic_trials(const std::vector<std::string>& number_types, std::size_t threads,
                                          std::vector<int> cores) {
  const py::gil_scoped_release no_lock;
  std::vector<ArithmeticKernel> kernels;
  for (const std::string& number_type : number_types) {
    const std::vector<ArithmeticKernel> found = available_arithmetic(number_type);
    kernels.insert(kernels.end(), found.begin(), found.end());
  }
  return std::make_unique<Trials>(kernels, Team{.threads = threads, .cores = std::move(cores)});
}

std::unique_ptr<Trials> triad_trials(std::size_t bytes_per_thread, bool in_caches, std::size_t threads,
                                     std::vector<int> cores) {
  const py::gil_scoped_release no_lock;
  return std::make_unique<Trials>(available_triads(in_caches), bytes_per_thread,
                                  Team{.threads = threads, .cores = std::move(cores)});
}

}  // namespace

void register_roofs(py::module_& module) {
  py::class_<Roof>(module, "RoofEstimate", "A limit of the machine, per second, with its interval.")
      .def_readonly("value", &Roof::value)
      .def_readonly("low", &Roof::low)
      .def_readonly("high", &Roof::high);
  py::class_<Trials>(module, "RoofTrials", "Short trials of the fastest kernel on all threads at once.")
      .def_property_readonly("instructions",
                             [](const Trials& self) { return std::string(self.instructions()); })
      .def("rates", &Trials::rates, py::arg("seconds"), py::call_guard<py::gil_scoped_release>(),
           "The operations or bytes per second of each trial.");
  module.def(
      "arithmetic_instructions",
      [](const std::string& number_type) {
        std::vector<std::string> found;
        for (const ArithmeticKernel& kernel : available_arithmetic(number_type)) {
          found.emplace_back(kernel.instructions);
        }
        return found;
      },
      py::arg("number_type"), "What this processor has for a number type, from the narrowest.");
  module.def("arithmetic_trials", &arithmetic_trials, py::arg("number_types"), py::arg("threads"),
             py::arg("cores"), "Of the fastest kernel of any of these number types.");
  module.def("triad_trials", &triad_trials, py::arg("bytes_per_thread"), py::arg("in_caches"),
             py::arg("threads"), py::arg("cores"));
  module.def(
      "roof_of", [](std::vector<double> rates) { return roof_of(rates); }, py::arg("rates"),
      "The upper quantile of the rates, with its interval.");
}
