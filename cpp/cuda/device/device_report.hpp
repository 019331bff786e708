#pragma once

#include <string>
#include <vector>

#include "cuda/device/device_floor.hpp"

namespace fairlap::cuda {

// One device as `fairlap floor` shows it.
struct DeviceReport {
  int index = -1;
  std::string name;
  std::string pci_bus_id;
  int capability_major = 0;
  int capability_minor = 0;
  std::size_t cache_bytes = 0;
  GateKind gate = GateKind::none;             // the best that works
  std::string gate_because;                   // why not a better one
  std::string context_events_absent_because;  // empty when they time correctly
  DeviceFloor floor;
  std::string floor_absent_because;
};

// Every device this process sees, each measured on its own private stream. This alone, of all that the engine
// does, starts an unused device: there is no framework whose device it could borrow, and it gives it
// back.
std::vector<DeviceReport> report_devices(const Driver& driver, const clock::Clock& clock);

}  // namespace fairlap::cuda
