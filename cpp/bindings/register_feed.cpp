#include <pybind11/native_enum.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/dlpack_capsule.hpp"
#include "bindings/register.hpp"
#include "cuda_link/cuda_link.hpp"
#include "feed/staging.hpp"

namespace py = pybind11;
using namespace fairlap;

namespace {

using Shape = std::vector<std::int64_t>;

// A batch in the consumer's hands. Tensors made from it by DLPack hold its slot on their own.
class Batch {
 public:
  Batch(std::shared_ptr<feed::Lending> lending, const feed::Staging::Delivered& delivered)
      : lending_(std::move(lending)), delivered_(delivered) {}
  ~Batch() { release(); }
  Batch(const Batch&) = delete;  // It is one hold on the slot.
  Batch& operator=(const Batch&) = delete;

  void release() {
    if (std::exchange(released_, true)) return;
    lending_->give_back(delivered_.ticket);
  }
  void release_after(const std::vector<std::uintptr_t>& streams) {
    if (released_) return;
    if (on_host() && !streams.empty()) throw py::value_error("a batch in host memory takes no stream");
    if (std::find(streams.begin(), streams.end(), 0) != streams.end()) refuse_stream_zero();
    lending_->give_back_after(delivered_.ticket, streams);
    released_ = true;
  }
  // Until the batch is on the device.
  void wait() const {
    refuse_when_released();
    if (on_host()) return;
    while (!lending_->link()->has_arrived(delivered_.ticket.slot)) {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      const py::gil_scoped_release no_lock;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  [[nodiscard]] std::pair<int, int> device() const noexcept {
    return {lending_->device().type, lending_->device().id};
  }
  [[nodiscard]] bool released() const noexcept { return released_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return delivered_.batch; }
  [[nodiscard]] std::size_t samples() const noexcept { return delivered_.samples; }
  [[nodiscard]] std::size_t bytes() const noexcept { return samples() * lending_->bytes_per_sample(); }
  [[nodiscard]] std::string type() const { return std::string(feed::name_of(lending_->delivered().type)); }

  [[nodiscard]] py::tuple shape() const {
    const Shape& of_sample = lending_->delivered().sample_shape;
    py::tuple out(of_sample.size() + 1);
    out[0] = samples();
    for (std::size_t place = 0; place < of_sample.size(); ++place) out[place + 1] = of_sample[place];
    return out;
  }
  [[nodiscard]] std::uintptr_t pointer() const {
    refuse_when_released();
    return reinterpret_cast<std::uintptr_t>(lending_->address_of(delivered_.ticket));
  }

  [[nodiscard]] py::capsule dlpack(const py::object& stream, std::optional<std::pair<int, int>> max_version,
                                   std::optional<std::pair<int, int>> wanted_device,
                                   std::optional<bool> copy) const {
    refuse_when_released();
    if (wanted_device && *wanted_device != device()) {
      throw py::buffer_error(on_host() ? "a batch in host memory is not copied to a device; copy it yourself"
                                       : "a batch is only on its feeder's device; copy it yourself");
    }
    if (copy.value_or(false))
      throw py::buffer_error("a batch is lent, not copied; copy the array that you get");
    const std::optional<std::uintptr_t> waits = stream_that_waits(stream);
    if (max_version && max_version->first >= 1) {
      return bindings::dlpack_capsule(lending_->lend_versioned(delivered_.ticket, waits));
    }
    return bindings::dlpack_capsule(lending_->lend(delivered_.ticket, waits));
  }

 private:
  [[nodiscard]] bool on_host() const noexcept { return lending_->device().type == feed::dlpack::kDeviceCpu; }

  [[noreturn]] static void refuse_stream_zero() {
    throw py::value_error("stream 0 can be either default stream: 1 is the legacy one, 2 the thread's");
  }
  static std::uintptr_t stream_number(const py::handle& stream) {
    if (!py::isinstance<py::int_>(stream) || py::isinstance<py::bool_>(stream)) {
      throw py::value_error(
          "a stream is given as a number: its address, 1 for the legacy default stream or 2 "
          "for the thread's");
    }
    const auto number = stream.cast<std::uintptr_t>();
    if (number == 0) refuse_stream_zero();
    return number;
  }
  // None is the legacy default stream on a device; -1 means that the consumer does all waiting itself.
  [[nodiscard]] std::optional<std::uintptr_t> stream_that_waits(const py::object& stream) const {
    if (stream.equal(py::int_(-1))) return std::nullopt;
    if (on_host() && !stream.is_none()) {
      throw py::value_error("a batch in host memory takes no stream; pass stream=None");
    }
    if (on_host()) return std::nullopt;
    return stream.is_none() ? 1 : stream_number(stream);
  }
  void refuse_when_released() const {
    if (!released_) return;
    throw feed::StaleSlot("batch " + std::to_string(number()) +
                          " has been released, and its memory may hold another batch by now");
  }

  std::shared_ptr<feed::Lending> lending_;
  feed::Staging::Delivered delivered_;
  bool released_ = false;
};

// Where samples come from, until a feeder takes it. The owner keeps memory that Python has alive.
struct SourceHandle {
  std::unique_ptr<feed::Source> source;
  py::object owner;
};

class Feeder {
 public:
  Feeder(SourceHandle& source, const feed::StagingSettings& settings) : owner_(source.owner) {
    if (source.source == nullptr) throw feed::BadFeed("a source feeds one feeder; make another source");
    const py::gil_scoped_release no_lock;  // Touching every page of the slots takes a while.
    staging_ = std::make_unique<feed::Staging>(std::move(source.source), settings);
  }
  // Ending the threads waits for what they read, which others need not.
  ~Feeder() {
    const py::gil_scoped_release no_lock;
    staging_.reset();
  }
  Feeder(const Feeder&) = delete;  // It is the threads.
  Feeder& operator=(const Feeder&) = delete;

  // None at the end. What is at hand is given at once; only waiting gives up the interpreter lock.
  std::unique_ptr<Batch> next(double patience_s) {
    feed::Staging::AtHand at_hand = staging_->next_at_hand();
    if (!at_hand.answered) at_hand.delivered = wait(patience_s);
    if (!at_hand.delivered.is_batch) return nullptr;
    return std::make_unique<Batch>(staging_->lending(), at_hand.delivered);
  }
  std::vector<std::uint64_t> close() {
    const py::gil_scoped_release no_lock;
    return staging_->close();
  }
  [[nodiscard]] const feed::Staging& staging() const noexcept { return *staging_; }

 private:
  feed::Staging::Delivered wait(double patience_s) {
    std::optional<py::error_already_set> raised;  // Ctrl-C
    const auto keep_waiting = [&raised] {
      const py::gil_scoped_acquire lock;
      if (PyErr_CheckSignals() != 0) raised.emplace();
      return !raised.has_value();
    };
    const auto patience = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(std::min(patience_s, 1e9)));
    try {
      const py::gil_scoped_release no_lock;
      return staging_->next(patience, keep_waiting);
    } catch (const feed::FeederStopped&) {
      if (raised) throw std::move(*raised);
      throw;
    }
  }

  py::object owner_;  // before the threads, so that it is let go of after they have ended
  std::unique_ptr<feed::Staging> staging_;
};

std::unique_ptr<Feeder> feeder_of(SourceHandle& source, std::size_t batch, std::size_t slots,
                                  std::size_t threads, std::optional<std::uint64_t> seed,
                                  std::uint64_t epochs, feed::LastBatch last,
                                  const std::optional<std::string>& type, float scale, float offset,
                                  feed::Layout layout, std::optional<int> cuda_device) {
  feed::StagingSettings settings;
  settings.order = {.batch = batch, .epochs = epochs, .seed = seed, .last = last};
  if (type) settings.gather.type = feed::element_type_named(*type);
  settings.gather.scale = scale;
  settings.gather.offset = offset;
  settings.gather.layout = layout;
  settings.slots = slots;
  settings.threads = threads;
  if (cuda_device) settings.link = cuda_link::link_to_cuda({.device = *cuda_device});
  return std::make_unique<Feeder>(source, settings);
}

void register_enums(py::module_& module) {
  using feed::LastBatch;
  using feed::Layout;
  py::native_enum<LastBatch>(module, "LastBatch", "enum.Enum",
                             "What happens to samples that do not fill the last batch of an epoch.")
      .value("keep", LastBatch::keep)
      .value("drop", LastBatch::drop)
      .value("wrap", LastBatch::wrap)
      .finalize();
  py::native_enum<Layout>(module, "Layout", "enum.Enum", "How the axes of a sample are reordered.")
      .value("as_is", Layout::as_is)
      .value("nhwc_to_nchw", Layout::to_channels_first)
      .value("nchw_to_nhwc", Layout::to_channels_last)
      .finalize();
}

void register_sources(py::module_& module) {
  py::class_<SourceHandle>(module, "FeedSource", "Where samples come from, until a feeder takes it.")
      .def_property_readonly("samples", [](const SourceHandle& self) {
        if (self.source == nullptr) throw feed::BadFeed("a feeder has taken this source");
        return self.source->array().samples;
      });
  module.def(
      "feed_from_raw",
      [](const std::string& path, std::uint64_t offset, const std::string& type, const Shape& sample_shape,
         std::size_t samples) {
        feed::SampleArray array{feed::element_type_named(type), sample_shape, samples};
        return SourceHandle{feed::source_in_raw_file(path, offset, std::move(array)), {}};
      },
      py::arg("path"), py::arg("offset"), py::arg("type"), py::arg("sample_shape"), py::arg("samples"));
  module.def(
      "feed_from_memory",
      [](std::uintptr_t pointer, const std::string& type, const Shape& sample_shape, std::size_t samples,
         py::object owner) {
        const feed::SampleArray array{feed::element_type_named(type), sample_shape, samples};
        return SourceHandle{feed::source_in_memory(reinterpret_cast<const std::byte*>(pointer), array),
                            std::move(owner)};
      },
      py::arg("pointer"), py::arg("type"), py::arg("sample_shape"), py::arg("samples"), py::arg("owner"));
}

void register_stalls(py::module_& module) {
  py::class_<feed::StallTimes>(
      module, "StallTimes",
      "Where the consumer's time went. The parts add up to wall_ns; a wait has one of four causes.")
      .def_readonly("wall_ns", &feed::StallTimes::wall_ns)
      .def_readonly("consumer_ns", &feed::StallTimes::consumer_ns, "The consumer was at its own work.")
      .def_readonly("source_ns", &feed::StallTimes::source_ns, "Waited while samples were read.")
      .def_readonly("staging_ns", &feed::StallTimes::staging_ns,
                    "Waited while samples were copied and converted.")
      .def_property_readonly(
          "link_ns",
          [](const feed::StallTimes& self) -> std::optional<std::uint64_t> {
            return self.has_link ? std::optional(self.link_ns) : std::nullopt;
          },
          "Waited while a copy to the device held up a slot; None where batches stay in host memory.")
      .def_readonly("no_slot_ns", &feed::StallTimes::no_slot_ns,
                    "Waited since the consumer, or its work on the device, held every slot.")
      .def_readonly("batches", &feed::StallTimes::batches)
      .def_readonly("samples", &feed::StallTimes::samples)
      .def_readonly("bytes", &feed::StallTimes::bytes);
}

void register_copy_times(py::module_& module) {
  py::class_<feed::CopyTimes>(
      module, "CopyTimes",
      "How long timed copies to a device took, and how much of that was behind work on "
      "other batches.")
      .def_readonly("copies", &feed::CopyTimes::copies)
      .def_readonly("copied_ns", &feed::CopyTimes::copied_ns)
      .def_readonly("hidden_ns", &feed::CopyTimes::hidden_ns,
                    "Behind work: from when the consumer's stream has a batch until it gets to its release.")
      .def_readonly("without_stream", &feed::CopyTimes::without_stream,
                    "Copies left out, since not one stream was named for all of the work on the batch.")
      .def_readonly("lost", &feed::CopyTimes::lost,
                    "Copies left out, since a batch was held while many others passed or an event failed.");
}

void register_batch(py::module_& module) {
  py::class_<Batch>(module, "Batch",
                    "A batch in host memory or on a device. It goes back to the feeder when it is released "
                    "or forgotten, and "
                    "every tensor made from it is gone.")
      .def_property_readonly("number", &Batch::number)
      .def_property_readonly("samples", &Batch::samples)
      .def_property_readonly(
          "shape",
          [](const Batch& self) -> py::typing::Tuple<py::int_, py::ellipsis> { return self.shape(); })
      .def_property_readonly("dtype", &Batch::type)
      .def_property_readonly("nbytes", &Batch::bytes)
      .def_property_readonly(
          "pointer", &Batch::pointer,
          "The address of the first element, valid until release(); nothing holds the slot for it.")
      .def_property_readonly("released", &Batch::released)
      .def("release", &Batch::release_after, py::arg("streams") = std::vector<std::uintptr_t>(),
           "Give the slot back. It is filled again once every tensor made from the batch is gone, too. On a "
           "device, give the addresses of streams that used it and that DLPack does not know of.")
      .def("wait", &Batch::wait,
           "Wait until the batch is on its device, for consumers that know no streams. On the CPU it is "
           "there.")
      .def("__dlpack__", &Batch::dlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def("__dlpack_device__", &Batch::device);
}

}  // namespace

void register_feed(py::module_& module) {
  py::register_exception<feed::BadFeed>(module, "BadFeed", PyExc_ValueError);
  py::register_exception<feed::StaleSlot>(module, "BatchReleased", PyExc_RuntimeError);
  py::register_exception<feed::BatchFailed>(module, "BatchFailed", PyExc_RuntimeError);
  py::register_exception<feed::FeederStopped>(module, "FeederStopped", PyExc_RuntimeError);
  py::register_exception<feed::LinkFailed>(module, "LinkFailed", PyExc_RuntimeError);
  register_enums(module);
  register_sources(module);
  register_stalls(module);
  register_copy_times(module);
  register_batch(module);
  py::class_<Feeder>(module, "Feeder", "Threads that fill slots with batches ahead of the consumer.")
      .def(py::init(&feeder_of), py::arg("source"), py::kw_only(), py::arg("batch"), py::arg("slots"),
           py::arg("threads"), py::arg("seed").none(true), py::arg("epochs"), py::arg("last"),
           py::arg("type").none(true), py::arg("scale"), py::arg("offset"), py::arg("layout"),
           py::arg("cuda_device").none(true))
      .def(
          "next",
          [](Feeder& self, double patience_s) -> py::typing::Optional<Batch> {
            return py::cast(self.next(patience_s));
          },
          py::arg("patience_s"), "The next batch, or None at the end.")
      .def("close", &Feeder::close,
           "End the threads; returns the numbers of the batches that are still held.")
      .def_property_readonly("batches", [](const Feeder& self) { return self.staging().batches(); })
      .def_property_readonly(
          "host_node",
          [](const Feeder& self) -> std::optional<int> {
            const feed::Link* const link = self.staging().lending()->link();
            return link == nullptr ? std::nullopt : link->host_node();
          },
          "The memory node that the pinned slots were put on, which is the device's; None where it is not "
          "known.")
      .def(
          "time_copies",
          [](const Feeder& self, bool on) {
            if (feed::Link* const link = self.staging().lending()->link()) link->time_copies(on);
          },
          py::arg("on"), "Time copies and the work on batches, or end that. In host memory there are none.")
      .def_property_readonly(
          "copy_times",
          [](const Feeder& self) -> std::optional<feed::CopyTimes> {
            const feed::Link* const link = self.staging().lending()->link();
            return link == nullptr ? std::nullopt : link->copy_times();
          },
          "Of the copies that were timed; None where none ever were.")
      .def_property_readonly("stalls", [](const Feeder& self) { return self.staging().stalls(); });
}
