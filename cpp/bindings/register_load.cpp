#include <pybind11/native_enum.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/collector_pause.hpp"
#include "bindings/one_at_a_time.hpp"
#include "bindings/python_service.hpp"
#include "bindings/register.hpp"
#include "load/known_service.hpp"
#include "load/load.hpp"

namespace py = pybind11;
using namespace fairlap;
using bindings::PythonService;
using load::KnownService;

namespace {

// An array of NumPy's in which the load reads or writes. The memory is the caller's, touched before the load.
template <class T>
class Column {
 public:
  Column(const py::buffer& array, bool writable) : info_(array.request(writable)) {
    if (info_.ndim != 1 || info_.itemsize != sizeof(T) || !info_.item_type_is_equivalent_to<T>() ||
        (info_.size > 1 && info_.strides[0] != sizeof(T))) {
      throw py::type_error("a column of a load is a one-dimensional, contiguous array of its type");
    }
  }
  [[nodiscard]] std::span<T> values() const {
    return {static_cast<T*>(info_.ptr), static_cast<std::size_t>(info_.size)};
  }

 private:
  py::buffer_info info_;
};

// The arrays of a load's requests.
struct Columns {
  Columns(const py::buffer& due, const py::buffer& items_of, const py::buffer& issued,
          const py::buffer& started, const py::buffer& completed, const py::buffer& worker_of,
          const py::buffer& group_of)
      : due_ns(due, false),
        items(items_of, false),
        issued_ns(issued, true),
        started_ns(started, true),
        completed_ns(completed, true),
        worker(worker_of, true),
        group(group_of, true) {
    const std::size_t count = due_ns.values().size();
    for (const std::size_t other :
         {items.values().size(), issued_ns.values().size(), started_ns.values().size(),
          completed_ns.values().size(), worker.values().size(), group.values().size()}) {
      if (other != count) throw std::invalid_argument("the columns of a load have one length");
    }
  }
  [[nodiscard]] load::Requests requests() const {
    return {.due_ns = due_ns.values(),
            .items = items.values(),
            .issued_ns = issued_ns.values(),
            .started_ns = started_ns.values(),
            .completed_ns = completed_ns.values(),
            .worker = worker.values(),
            .group = group.values()};
  }

  Column<double> due_ns;
  Column<std::uint32_t> items;
  Column<double> issued_ns;
  Column<double> started_ns;
  Column<double> completed_ns;
  Column<std::int32_t> worker;
  Column<std::int32_t> group;
};

// A service of known length with the array that it reads.
struct KnownServiceHandle {
  KnownServiceHandle(const py::buffer& lengths, load::KnownServiceBy by, const clock::Clock& on)
      : length_ns(lengths, false), service(length_ns.values(), by, on) {}
  Column<double> length_ns;
  KnownService service;
};

// All that the threads of a load use. Where a worker was left in a call it is never destroyed.
struct LoadParts {
  Columns columns;
  Column<std::uint32_t> missed_at;
  Column<std::int32_t> met_at;
  Column<std::uint8_t> kept;
  std::vector<py::object> owners;
  std::optional<load::Load> load;
};

struct LoadRecord {
  load::Outcome outcome;
  py::object exception = py::none();
  bool collector_came_back = false;
};

load::Service* service_of(const py::object& worker, const py::object& items, const LoadParts& parts,
                          const py::object& look) {
  const std::size_t count = parts.columns.due_ns.values().size();
  if (py::isinstance<KnownServiceHandle>(worker)) {
    auto& known = worker.cast<KnownServiceHandle&>();
    if (known.length_ns.values().size() < count) throw std::invalid_argument("a length for each request");
    return &known.service;
  }
  auto& python = worker.cast<PythonService&>();
  for (const std::uint32_t item : parts.columns.items.values()) {
    if (item >= python.items()) throw std::invalid_argument("a request asks about an item without a call");
  }
  python.prepare(items, parts.columns.items.values(), {.kept = parts.kept.values(), .look = look});
  return &python;
}

// Which exception ended the load: that of Ctrl-C, or the first worker's.
py::object exception_of(const std::vector<py::object>& workers) {
  for (const py::object& worker : workers) {
    if (!py::isinstance<PythonService>(worker)) continue;
    py::object raised = worker.cast<PythonService&>().exception();
    if (!raised.is_none()) return raised;
  }
  return py::none();
}

LoadRecord run_load(const std::vector<py::object>& workers, const clock::Clock& on, const py::buffer& due_ns,
                    const py::object& items, const py::buffer& issued_ns, const py::buffer& started_ns,
                    const py::buffer& completed_ns, const py::buffer& worker, const py::buffer& group,
                    std::uint32_t largest_batch, double longest_wait_ns, double bound_ns,
                    const py::buffer& missed_at, const py::buffer& met_at, const py::buffer& kept,
                    const py::object& look, double give_up_ns, double spin_ns, bool warm_up,
                    bool pause_collector) {
  if (workers.empty() || largest_batch == 0)
    throw std::invalid_argument("at least one worker, one request each");
  const bindings::OneAtATime one_at_a_time;
  std::unique_ptr<LoadParts> parts(new LoadParts{
      .columns = {due_ns, items.cast<py::buffer>(), issued_ns, started_ns, completed_ns, worker, group},
      .missed_at = {missed_at, false},
      .met_at = {met_at, false},
      .kept = {kept, false},
      .owners = workers,
      .load = std::nullopt});
  if (parts->kept.values().size() != parts->columns.due_ns.values().size())
    throw std::invalid_argument("a flag for each request");
  std::vector<load::Service*> services;
  services.reserve(workers.size());
  for (const py::object& each : workers) services.push_back(service_of(each, items, *parts, look));
  const load::Settings settings{.batching = {.largest = largest_batch, .longest_wait_ns = longest_wait_ns},
                                .decision = {.bound_ns = bound_ns,
                                             .missed_at = parts->missed_at.values(),
                                             .met_at = parts->met_at.values()},
                                .give_up_ns = give_up_ns,
                                .spin_ns = spin_ns,
                                .warm_up = warm_up};
  parts->load.emplace(parts->columns.requests(), services, settings, on);

  LoadRecord out;
  std::optional<py::error_already_set> signal;  // Ctrl-C
  const auto keep_going = [&signal] {
    const py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() == 0) return true;
    signal.emplace();
    return false;
  };
  const bindings::CollectorPause pause(pause_collector);
  {
    const py::gil_scoped_release no_lock;
    out.outcome = parts->load->run(keep_going);
  }
  out.collector_came_back = pause.undone();
  out.exception = signal ? py::reinterpret_borrow<py::object>(signal->value()) : exception_of(workers);
  if (out.outcome.left_in_call > 0) parts.release();  // NOLINT(bugprone-unused-return-value)
  return out;
}

void register_enums(py::module_& module) {
  using load::KnownServiceBy;
  using load::LoadEnd;
  py::native_enum<LoadEnd>(module, "LoadEnd", "enum.Enum", "Why a load ended.")
      .value("running", LoadEnd::running)
      .value("completed", LoadEnd::completed)
      .value("met", LoadEnd::met)
      .value("missed", LoadEnd::missed)
      .value("raised", LoadEnd::raised)
      .value("interrupted", LoadEnd::interrupted)
      .value("gave_up", LoadEnd::gave_up)
      .finalize();
  py::native_enum<KnownServiceBy>(module, "KnownServiceBy", "enum.Enum",
                                  "How a known service passes its time.")
      .value("spinning", KnownServiceBy::spinning)
      .value("sleeping", KnownServiceBy::sleeping)
      .finalize();
}

void register_services(py::module_& module) {
  py::class_<PythonService>(module, "PythonService",
                            "Python callables that answer requests, one for each item.")
      .def(py::init<std::vector<py::object>, py::object, py::object>(), py::arg("calls"),
           py::arg("batch_call").none(true), py::arg("done").none(true));
  py::class_<KnownServiceHandle>(module, "KnownService", "Takes as long as was given for each request.")
      .def(py::init<const py::buffer&, load::KnownServiceBy, const clock::Clock&>(), py::arg("length_ns"),
           py::arg("by"), py::arg("clock"));
}

}  // namespace

void register_load(py::module_& module) {
  register_enums(module);
  register_services(module);
  const auto of_outcome = [](auto member) {
    return [member](const LoadRecord& self) { return self.outcome.*member; };
  };
  py::class_<LoadRecord>(module, "LoadRecord", "How a load ended.")
      .def_property_readonly("end", of_outcome(&load::Outcome::end))
      .def_property_readonly("elapsed_ns", of_outcome(&load::Outcome::elapsed_ns))
      .def_property_readonly("left_in_call", of_outcome(&load::Outcome::left_in_call))
      .def_property_readonly("exception", [](const LoadRecord& self) { return self.exception; })
      .def_readonly("collector_came_back", &LoadRecord::collector_came_back);
  module.def("run_load", &run_load, py::arg("workers"), py::arg("clock"), py::kw_only(), py::arg("due_ns"),
             py::arg("items"), py::arg("issued_ns"), py::arg("started_ns"), py::arg("completed_ns"),
             py::arg("worker"), py::arg("group"), py::arg("largest_batch"), py::arg("longest_wait_ns"),
             py::arg("bound_ns"), py::arg("missed_at"), py::arg("met_at"), py::arg("kept"),
             py::arg("look").none(true), py::arg("give_up_ns"), py::arg("spin_ns"), py::arg("warm_up"),
             py::arg("pause_collector"));
}
