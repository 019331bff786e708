#include "fakes/cuda/world.hpp"

#include <sys/mman.h>

#include <cstdlib>

#include "fakes/cuda/costs.hpp"
#include "fakes/cuda/memory.hpp"

namespace fairlap::fakes {

World& world() {
  // Never destroyed: a client's threads may still call while the process ends.
  static World* const the_world = [] {
    auto* fresh = new World;
    reset_world(*fresh);
    return fresh;
  }();
  return *the_world;
}

Handle World::new_handle() {
  constexpr std::size_t kReservedBytes = std::size_t{256} << 20;
  constexpr Handle kHandleBytes = 16;
  static const auto reserved = reinterpret_cast<Handle>(
      mmap(nullptr, kReservedBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (last_handle == 0) last_handle = reserved;
  last_handle += kHandleBytes;
  if (last_handle + kHandleBytes > reserved + kReservedBytes)
    std::abort();  // sixteen million handles in one test
  return last_handle;
}

Device new_device(std::size_t slot) {
  Device device;
  device.slot = static_cast<int>(slot);
  // The figures of a data-centre board of compute capability 9.0; a test that needs others sets them.
  device.attributes = {{13, 1'980'000},   // clock rate, kHz
                       {16, 132},         // multiprocessors
                       {19, 1},           // can map host memory
                       {38, 50 << 20},    // L2 bytes
                       {41, 1},           // unified addressing
                       {75, 9},           // compute capability, major
                       {76, 0},           // and minor
                       {92, 1},           // stream memory operations
                       {108, 31 << 20}};  // persisting L2 bytes, at most
  device.memory_bytes = std::uint64_t{16} << 30;
  return device;
}

void reset_world(World& w) {
  free_all_memory(w);
  ++w.generation;
  w.initialised = false;
  w.driver_version = 13000;
  w.poison = 0;
  w.faults = FaultBook{};
  w.timeline = Timeline{};
  w.costs_ns = default_costs_ns();
  w.hidden_functions.clear();
  w.event_tick_ns = 32;
  w.event_record_ns = 0;
  w.globaltimer_step_ns = 32;
  w.stream_waits = StreamWaits::held;
  w.launches_block = false;
  w.has_jit = true;
  w.context_events_of = 0;
  w.block_limit_ms = 30000;
  w.pushed_contexts = 0;
  w.look_ns = 0;
  w.resets_while_busy = 0;
  w.kernel_durations_ns.clear();
  w.instruction_rates.clear();
  w.operations_with_wrong_sums.clear();
  w.cache_bytes_per_s = 6e12;
  w.memory_bytes_per_s = 3e12;
  w.to_device_bytes_per_s = w.from_device_bytes_per_s = 25e9;
  w.copy_latency_ns = 1000;
  w.peer_links.clear();
  w.peer_accesses.clear();
  w.devices.assign(1, new_device(0));
  w.contexts.clear();
  w.events.clear();
  w.graphs.clear();
  w.graph_execs.clear();
  w.modules.clear();
  w.functions.clear();
  w.most_shared_bytes.clear();
  w.rounds.clear();
  w.checked_sums.clear();
  w.captures.clear();
  w.given_back.clear();
  w.memory_given_back.clear();
  w.misuses.clear();
  w.launch_function = "cuLaunchKernel";
}

const char* intern(const std::string& name) {
  static auto* const names = new std::set<std::string>;
  return names->insert(name).first->c_str();
}

std::size_t pending_count(World& w, Stream& stream) {
  while (!stream.work.empty() && w.timeline.done(stream.work.front())) stream.work.pop_front();
  return stream.work.size();
}

}  // namespace fairlap::fakes
