#include <cstring>
#include <ctime>

#include "fakes/cupti/profiler.hpp"

// How records lie in a client's buffer. Their beginnings never moved; their sizes grew with releases.
namespace fairlap::fakes {
namespace {

using namespace fairlap::cuda;  // records are written in the library's own types

struct Sizes {
  std::uint32_t since_version;
  std::size_t kernel;
  std::size_t copy;
  std::size_t fill;
};
constexpr std::size_t kPeerCopyBytes = 96;
// As the headers of CUDA 12.0, 12.5, 12.9, 13.0 and 13.5 have them, by the first version that was looked at.
constexpr Sizes kSizes[] = {
    {0, 200, 88, 88}, {23, 208, 88, 88}, {28, 208, 96, 88}, {130001, 216, 96, 88}, {130500, 248, 112, 104}};

template <class Record>
Record place(const Profiler& p, const fake_cuda_activity& activity) {
  Record record{};
  record.kind = activity.kind;
  record.start = stamp(p, activity.start_ns + p.records_late_by_ns);
  record.end = stamp(p, activity.end_ns + p.records_late_by_ns);
  record.deviceId = activity.device;
  record.contextId = activity.context;
  record.streamId = activity.stream;
  return record;
}

template <class Record>
void put(const Record& record, std::uint8_t* out) {
  std::memcpy(out, &record, sizeof record);
}

}  // namespace

std::int64_t wall_clock_ns() {
  std::timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::uint64_t stamp(const Profiler& p, std::int64_t time_ns) {
  const auto ns = static_cast<std::uint64_t>(time_ns + p.epoch_ns);
  return p.counts_cycles ? ns * FAKE_CUPTI_CYCLES_PER_NS : ns;
}

std::size_t record_bytes(std::uint32_t version, int kind) {
  Sizes sizes = kSizes[0];
  for (const Sizes& candidate : kSizes) {
    if (version >= candidate.since_version) sizes = candidate;
  }
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizes.copy;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizes.fill;
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizes.kernel;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return kPeerCopyBytes;
    default:
      return 0;
  }
}

void write_record(const Profiler& p, const fake_cuda_activity& activity, std::uint8_t* out) {
  if (activity.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    auto record = place<ActivityMemcpyPrefix>(p, activity);
    record.copyKind = static_cast<std::uint8_t>(activity.copy_kind);
    record.bytes = activity.bytes;
    record.correlationId = activity.correlation;
    put(record, out);
  } else if (activity.kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
    auto record = place<ActivityPeerCopyPrefix>(p, activity);
    record.copyKind = static_cast<std::uint8_t>(activity.copy_kind);
    record.bytes = activity.bytes;
    put(record, out);
  } else if (activity.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    auto record = place<ActivityMemsetPrefix>(p, activity);
    record.value = activity.fill_value;
    record.bytes = activity.bytes;
    record.correlationId = activity.correlation;
    put(record, out);
  } else {
    auto record = place<ActivityKernelPrefix>(p, activity);
    record.correlationId = activity.correlation;
    record.gridId = activity.correlation;
    record.name = activity.name;
    put(record, out);
  }
}

void spoil_record(fake_cupti_spoiling spoiling, std::uint8_t* record) {
  ActivityKernelPrefix kernel;
  std::memcpy(&kernel, record, sizeof kernel);
  if (spoiling == FAKE_CUPTI_NO_TIMES) kernel.start = 0;
  if (spoiling == FAKE_CUPTI_NEVER_WRITTEN) kernel.kind = 0;
  kernel.end = 0;
  std::memcpy(record, &kernel, sizeof kernel);
}

}  // namespace fairlap::fakes
