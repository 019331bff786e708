#include "cuda/device/device_report.hpp"

#include <array>

#include "cuda/device/device_identity.hpp"
#include "cuda/gate/gate_choice.hpp"
#include "cuda/gate/guard.hpp"
#include "cuda/sampling/cache_flush.hpp"

namespace fairlap::cuda {
namespace {

constexpr auto kGateLimit = std::chrono::seconds(2);

void measure(const Driver& driver, const clock::Clock& clock, DeviceReport& report) {
  const BorrowedContext context = BorrowedContext::start_device(driver, report.index);
  std::optional<Kernels> kernels;
  try {
    kernels.emplace(context);
  } catch (const CudaError& error) {
    report.gate_because = error.what();
  }
  const Kernels* const code = kernels ? &*kernels : nullptr;
  const ContextEvents events = probe_context_events(context, code);
  report.context_events_absent_because = events.why_not;
  const PrivateStream own(context);
  const BorrowedStream stream =
      BorrowedStream::borrow(driver, reinterpret_cast<std::uintptr_t>(own.handle()), report.index);
  const GateChoice choice = choose_gate(stream, std::nullopt, code);
  report.gate = choice.kind;
  if (!choice.because.empty()) report.gate_because = choice.because;
  std::optional<Gate> gate;
  if (choice.kind != GateKind::none) gate.emplace(context, choice.kind, code, kGateLimit);
  report.floor = measure_device_floor(stream, gate ? &*gate : nullptr, code, clock);
  report.floor.gate_release_ns = choice.release_ns;
  if (events.usable) report.floor.context_pair_ns = events.idle_span_ns;
}

}  // namespace

std::vector<DeviceReport> report_devices(const Driver& driver, const clock::Clock& clock) {
  int count = 0;
  driver.cuDeviceGetCount(&count);
  std::vector<DeviceReport> reports;
  for (int index = 0; index < count; ++index) {
    DeviceReport report;
    report.index = index;
    CUdevice device = -1;
    driver.cuDeviceGet(&device, index);
    std::array<char, 256> text{};
    driver.cuDeviceGetName(text.data(), static_cast<int>(text.size()), device);
    report.name = text.data();
    report.pci_bus_id = identity_of(driver, device).pci_bus_id;
    report.capability_major = device_attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    report.capability_minor = device_attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    report.cache_bytes =
        static_cast<std::size_t>(device_attribute(driver, device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
    try {
      measure(driver, clock, report);
    } catch (const std::exception& error) {  // One broken device does not hide the others.
      report.floor_absent_because = error.what();
    }
    reports.push_back(report);
  }
  return reports;
}

}  // namespace fairlap::cuda
