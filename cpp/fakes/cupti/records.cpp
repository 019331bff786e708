#include <cstring>

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

std::uint64_t stamp(std::int64_t time_ns) {
  return static_cast<std::uint64_t>(time_ns + FAKE_CUPTI_EPOCH_NS);
}

template <class Record>
Record place(const fake_cuda_activity& activity) {
  Record record{};
  record.kind = activity.kind;
  record.start = stamp(activity.start_ns);
  record.end = stamp(activity.end_ns);
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

void write_record(const fake_cuda_activity& activity, std::uint8_t* out) {
  if (activity.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    auto record = place<ActivityMemcpyPrefix>(activity);
    record.copyKind = static_cast<std::uint8_t>(activity.copy_kind);
    record.bytes = activity.bytes;
    record.correlationId = activity.correlation;
    put(record, out);
  } else if (activity.kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
    auto record = place<ActivityPeerCopyPrefix>(activity);
    record.copyKind = static_cast<std::uint8_t>(activity.copy_kind);
    record.bytes = activity.bytes;
    put(record, out);
  } else if (activity.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    auto record = place<ActivityMemsetPrefix>(activity);
    record.value = activity.fill_value;
    record.bytes = activity.bytes;
    record.correlationId = activity.correlation;
    put(record, out);
  } else {
    auto record = place<ActivityKernelPrefix>(activity);
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
