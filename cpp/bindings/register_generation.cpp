#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/python_answer.hpp"
#include "bindings/register.hpp"
#include "bindings/samples.hpp"

namespace py = pybind11;
using fairlap::bindings::AnswerStamps;
using fairlap::bindings::PythonAnswer;
using fairlap::bindings::Samples;

namespace {

Samples samples_of(std::vector<double> values) {
  const auto kept = std::make_shared<const std::vector<double>>(std::move(values));
  return {kept, *kept};
}

}  // namespace

void register_generation(py::module_& module) {
  py::class_<AnswerStamps, std::shared_ptr<AnswerStamps>>(module, "AnswerStamps",
                                                          "When each token of answers came.")
      .def(py::init([](std::size_t tokens, std::size_t most_answers, const fairlap::clock::Clock& clock) {
             if (tokens == 0 || most_answers == 0)
               throw std::invalid_argument("stamps need at least one token and one answer");
             return std::make_shared<AnswerStamps>(tokens, most_answers, clock);
           }),
           py::arg("tokens"), py::arg("most_answers"), py::arg("clock"), py::keep_alive<1, 4>())
      .def("record", &AnswerStamps::record, py::arg("on"), "Whether answers from now on are recorded.")
      .def(
          "newest",
          [](const AnswerStamps& stamps, std::size_t count) { return samples_of(stamps.newest(count)); },
          py::arg("count"),
          "Of the newest complete answers, the oldest first: the thread, the clock when it began, and for "
          "each token ns since the answer began.")
      .def_property_readonly("width", &AnswerStamps::width);
  py::class_<PythonAnswer>(module, "PythonAnswer", "A callable for one whole answer.")
      .def(py::init<py::object, py::object, py::object, std::vector<py::object>, std::size_t,
                    std::shared_ptr<AnswerStamps>>(),
           py::arg("first"), py::arg("next"), py::arg("prompt"), py::arg("tokens"), py::arg("items"),
           py::arg("stamps"))
      .def("__call__", &PythonAnswer::operator());
}
