#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fakes/cuda/timeline.hpp"
#include "fakes/fake_cuda.h"
#include "fakes/fault_book.hpp"

// Everything the fake driver knows, as plain data. The other files act on it, each for one
// part of the driver's interface, always under World::mutex.
namespace fairlap::fakes {

using Handle = std::uint64_t;

// A piece of work before it has a place in time: what one call asks for, or a node of a graph.
struct Task {
  std::int64_t duration_ns = 0;
  std::shared_ptr<const Gate> gate;
  std::function<void(const Op&)> effect;  // on memory, at the end
  std::optional<fake_cuda_activity> activity;
};

struct GraphNode {
  Task task;
  std::vector<std::size_t> after;
  Handle handle = 0;
};

struct Graph {
  std::uint32_t id = 0;
  std::vector<GraphNode> nodes;
};

struct GraphExec {
  Graph graph;
  OpPtr last_launch;  // launches of one executable graph never overlap
};

struct Capture {
  int mode = 0;
  std::thread::id thread;
  Handle context = 0;
  Handle origin = 0;
  bool invalidated = false;
  Graph graph;
};
using CapturePtr = std::shared_ptr<Capture>;

struct Stream {
  Handle handle = 0;
  Handle context = 0;
  std::uint32_t id = 0;
  bool non_blocking = false;
  bool legacy = false;
  bool from_framework = false;
  std::deque<OpPtr> work;  // in order; what has ended is dropped from the front
  CapturePtr capture;
  std::vector<std::size_t> frontier;  // captured nodes that the next one depends on

  [[nodiscard]] OpPtr last() const { return work.empty() ? nullptr : work.back(); }
};
using StreamPtr = std::shared_ptr<Stream>;

struct Context {
  Handle handle = 0;
  std::uint32_t id = 0;
  int device = 0;
  bool primary = false;
  StreamPtr legacy;
  std::map<std::thread::id, StreamPtr> per_thread;
  std::map<Handle, StreamPtr> streams;
  std::vector<OpPtr> orphans;  // pending work of destroyed streams
  OpPtr barrier;               // work enqueued later starts after it
};
using ContextPtr = std::shared_ptr<Context>;

struct Event {
  Handle context = 0;
  bool timing = true;
  OpPtr record;        // null before the first record
  CapturePtr capture;  // set when it was last recorded in a capturing stream
  std::vector<std::size_t> frontier;
};

struct Allocation {
  enum class Kind { device, host, registered };
  Kind kind = Kind::device;
  std::uint64_t bytes = 0;
  int device = 0;
  bool is_on_board = false;     // else it has a mapping of its own
  std::uint64_t opened_as = 0;  // the export of another process that it is
  std::int64_t times_opened = 0;
};

// How often each PTX operation stands between the label ROUND and the branch back to it.
using Round = std::map<std::string, std::int64_t>;

struct Module {
  Handle context = 0;
  std::map<std::string, Handle> functions;
};

// What a client gave back, and by which call.
struct GivenBack {
  const char* kind = "";
  const char* by = "";
};
struct MemoryGivenBack {
  std::uint64_t bytes = 0;
  const char* by = "";
};

struct Device {
  int slot = 0;      // where it sits, which gives its PCI address and the end of its UUID
  std::string uuid;  // hexadecimal digits, when it is not the one of its slot: an instance of a MIG device
  std::map<int, int> attributes;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_used = 0;
  Handle primary = 0;
  int retains = 0;  // through the driver's interface
  bool held_by_framework = false;
  std::size_t persisting_l2_bytes = 0;
};

// How this machine's driver takes a stream's wait on a value.
enum class StreamWaits { held = 0, refused = 1, ignored = 2 };

struct World {
  std::mutex mutex;
  std::uint64_t generation = 1;  // counts resets, so that a blocked call or a thread's stack can see one

  bool initialised = false;
  int driver_version = 13000;
  int poison = 0;
  FaultBook faults;
  Timeline timeline;
  std::map<std::string, std::int64_t> costs_ns;
  std::set<std::string> hidden_functions;

  std::int64_t event_tick_ns = 32;
  std::int64_t event_record_ns = 0;
  std::int64_t globaltimer_step_ns = 32;
  StreamWaits stream_waits = StreamWaits::held;
  bool launches_block = false;  // as CUDA_LAUNCH_BLOCKING=1 makes them
  bool has_jit = true;          // libnvidia-ptxjitcompiler is installed
  int context_events_of = 0;    // whose stamp they have: see fake_cuda_set_context_events_of
  std::int64_t block_limit_ms = 30000;
  std::int64_t blocked_calls = 0;
  std::int64_t look_ns = 0;  // what the last of the looks in a row cost
  std::int64_t resets_while_busy = 0;
  std::int64_t pushed_contexts = 0;
  std::map<std::string, std::int64_t> kernel_durations_ns;
  std::map<std::string, double> instruction_rates;  // by PTX operation, a second, of all threads together
  std::set<std::string> operations_with_wrong_sums;
  double cache_bytes_per_s = 0.0;
  double memory_bytes_per_s = 0.0;
  double to_device_bytes_per_s = 0.0;  // over the link to the host
  double from_device_bytes_per_s = 0.0;
  std::int64_t copy_latency_ns = 0;
  std::map<std::pair<int, int>, double> peer_links;   // bytes a second, from one device to another
  std::set<std::pair<Handle, Handle>> peer_accesses;  // of contexts, each to another

  std::vector<Device> devices;
  std::map<Handle, ContextPtr> contexts;
  std::map<Handle, Event> events;
  std::map<std::uint64_t, Allocation> allocations;  // by address
  std::map<Handle, Graph> graphs;
  std::map<Handle, GraphExec> graph_execs;
  std::map<Handle, Module> modules;
  std::map<Handle, const char*> functions;           // names, which live as long as the library
  std::map<Handle, Round> rounds;                    // of functions that repeat one
  std::map<Handle, std::uint32_t> checked_sums;      // of a thread, in functions that check a roof
  std::map<Handle, unsigned int> most_shared_bytes;  // of functions for which a client has set it
  std::vector<CapturePtr> captures;
  std::map<Handle, GivenBack> given_back;
  std::map<std::uint64_t, MemoryGivenBack>
      memory_given_back;  // by address, as long as no new memory is there
  std::vector<std::string> misuses;

  fake_cuda_activity_listener listener = nullptr;
  void* listener_user = nullptr;
  fake_cuda_launch_listener launch_listener = nullptr;
  void* launch_listener_user = nullptr;
  const char* launch_function = "cuLaunchKernel";  // of the framework's own launches

  Handle last_handle = 0;
  std::uint32_t last_context_id = 0;
  std::uint32_t last_stream_id = 6;
  std::uint32_t last_correlation = 0;
  std::uint32_t last_graph_id = 0;

  // Handles are addresses of readable memory, as the real driver's are, and are never given out twice, so
  // that use after destruction is seen.
  Handle new_handle();
};

World& world();
void reset_world(World& w);
Device new_device(std::size_t slot);

// Names outlive every reset, because activity records hold their addresses.
const char* intern(const std::string& name);

// The work that `stream` has not finished; drops the rest.
std::size_t pending_count(World& w, Stream& stream);

}  // namespace fairlap::fakes
