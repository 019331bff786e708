#include <chrono>

#include "fakes/fake_nvml.h"
#include "fakes/nvml/machine.hpp"

// fake_nvml.h: what a test can set and ask.
namespace fairlap::fakes {
namespace {

// Runs under the lock, on the board if there is one of that number.
template <class Body>
void with_board(int device, Body body) {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  if (device >= 0 && static_cast<std::size_t>(device) < m.boards.size())
    body(m.boards[static_cast<std::size_t>(device)]);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void fake_nvml_reset(void) {
  const std::lock_guard lock(machine().mutex);
  reset(machine());
}

void fake_nvml_set_device_count(int count) {
  const std::lock_guard lock(machine().mutex);
  machine().boards.clear();
  for (int number = 0; number < count; ++number) machine().boards.emplace_back(number);
}

int fake_nvml_add_mig_instance(int device, const char* uuid) {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  if (device < 0 || static_cast<std::size_t>(device) >= m.boards.size()) return -1;
  m.has_mig = m.boards[static_cast<std::size_t>(device)].mig = true;
  Board& instance = m.boards.emplace_back(static_cast<int>(m.boards.size()));
  instance.uuid = uuid;
  instance.pci_bus_id = m.boards[static_cast<std::size_t>(device)].pci_bus_id;
  instance.instance_of = device;
  return instance.number;
}

void fake_nvml_set_driver_version(const char* version, int cuda_version) {
  const std::lock_guard lock(machine().mutex);
  machine().driver_version = version;
  machine().cuda_version = cuda_version;
}

void fake_nvml_use_real_clock(int real) {
  using std::chrono::duration_cast;
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  m.real_clock = real != 0;
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  m.real_start_ns = duration_cast<std::chrono::nanoseconds>(steady).count();
  m.epoch_us = m.real_clock ? duration_cast<std::chrono::microseconds>(wall).count() : FAKE_NVML_EPOCH_US;
}

int64_t fake_nvml_now_ns(void) {
  const std::lock_guard lock(machine().mutex);
  return machine().now_ns();
}

void fake_nvml_advance(int64_t ns) {
  const std::lock_guard lock(machine().mutex);
  machine().test_now_ns += ns;
}

void fake_nvml_set_cost(const char* function, int64_t ns) {
  const std::lock_guard lock(machine().mutex);
  machine().costs_ns[function] = ns;
}

void fake_nvml_power_constant(int device, double milliwatts) {
  with_board(device, [&](Board& board) { board.power.set_constant(milliwatts); });
}

void fake_nvml_power_point(int device, int64_t time_ns, double milliwatts, int straight_line) {
  with_board(device, [&](Board& board) { board.power.add_point(time_ns, milliwatts, straight_line != 0); });
}

void fake_nvml_power_sensor(int device, int64_t period_ns, int64_t phase_ns, int64_t window_ns,
                            int64_t average_ns) {
  with_board(device, [&](Board& board) { board.sensor = {period_ns, phase_ns, window_ns, average_ns}; });
}

void fake_nvml_energy_counter(int device, uint64_t start_mj, int64_t period_ns, uint64_t wrap_mj) {
  with_board(device, [&](Board& board) { board.energy = {start_mj, period_ns, wrap_mj}; });
}

int fake_nvml_set_reading(int device, const char* reading, uint64_t value) {
  int found = 0;
  with_board(device, [&](Board& board) {
    const auto entry = board.readings.find(reading);
    if (entry == board.readings.end()) return;
    entry->second = value;
    found = 1;
  });
  return found;
}

void fake_nvml_set_field(int device, uint32_t field, int value_type, uint64_t start, uint64_t per_second,
                         uint64_t wrap) {
  with_board(device, [&](Board& board) { board.counters[field] = {value_type, start, per_second, wrap}; });
}

void fake_nvml_fail(const char* function, int64_t nth_call, int error) {
  const std::lock_guard lock(machine().mutex);
  machine().faults.fail(function, nth_call, error);
}

void fake_nvml_fail_field(uint32_t field, int64_t nth_read, int error) {
  const std::lock_guard lock(machine().mutex);
  machine().field_faults.fail(std::to_string(field), nth_read, error);
}

void fake_nvml_forget_faults(void) {
  const std::lock_guard lock(machine().mutex);
  machine().faults.forget_faults();
  machine().field_faults.forget_faults();
}

void fake_nvml_lose_gpu(int device) {
  with_board(device, [](Board& board) { board.lost = true; });
}

void fake_nvml_unplug(int device) {
  with_board(device, [](Board& board) { board.lost = board.unplugged = true; });
}

int64_t fake_nvml_call_count(const char* function) {
  const std::lock_guard lock(machine().mutex);
  return machine().faults.calls(function);
}

int64_t fake_nvml_outstanding_inits(void) {
  const std::lock_guard lock(machine().mutex);
  return machine().inits;
}

}  // extern "C"
#pragma GCC visibility pop
}  // namespace fairlap::fakes
