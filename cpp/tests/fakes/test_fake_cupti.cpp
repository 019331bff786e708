#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "fakes/cupti/exports.hpp"
#include "fakes/fake_cupti.h"
#include "tests/check.hpp"
#include "tests/fake_cuda_setup.hpp"

using namespace fairlap::test;

namespace {

// A client of the real protocol: it hands out buffers and keeps what comes back.
struct Client {
  std::size_t buffer_bytes = 4096;
  std::size_t most_records = 0;
  bool refuse = false;
  int buffers = 0;
  std::thread::id delivered_on;
  std::vector<ActivityKernelPrefix> kernels;
  std::vector<ActivityMemcpyPrefix> copies;
  std::vector<ActivityMemsetPrefix> fills;
  std::vector<ActivityPeerCopyPrefix> peer_copies;
};
Client client;

template <class Record>
void keep(std::vector<Record>& to, const CUpti_Activity* from) {
  Record record;
  std::memcpy(&record, from, sizeof record);
  to.push_back(record);
}

void requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  ++client.buffers;
  *buffer = client.refuse ? nullptr : new std::uint8_t[client.buffer_bytes];
  *bytes = client.refuse ? 0 : client.buffer_bytes;
  *most_records = client.most_records;
}

void completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  client.delivered_on = std::this_thread::get_id();
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) keep(client.kernels, record);
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) keep(client.copies, record);
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) keep(client.fills, record);
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2) keep(client.peer_copies, record);
  }
  delete[] buffer;
}

class Profiling {
 public:
  Profiling() {
    fake_cupti_reset();
    client = Client{};
    CHECK_EQUAL(cuptiSubscribe(&subscriber, nullptr, nullptr), CUPTI_SUCCESS);
    CHECK_EQUAL(cuptiActivityRegisterCallbacks(&requested, &completed), CUPTI_SUCCESS);
    for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                          CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMCPY2}) {
      CHECK_EQUAL(cuptiActivityEnable(kind), CUPTI_SUCCESS);
    }
  }
  CUpti_SubscriberHandle subscriber = nullptr;
};

std::int64_t time_of(std::uint64_t stamp) { return static_cast<std::int64_t>(stamp) - fake_cupti_epoch_ns(); }

}  // namespace

TEST("every kernel is recorded with its name, stream and exact times") {
  const FrameworkAtWork at_work;
  const Profiling profiling;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  fake_cuda_kernel(at_work.stream, "first", 100);
  fake_cuda_kernel(at_work.stream, "second", 50);
  fake_cuda_kernel(other, "elsewhere", 120);
  cuCtxSynchronize();
  CHECK_EQUAL(cuptiActivityFlushAll(1), CUPTI_SUCCESS);
  CHECK_EQUAL(client.kernels.size(), 3U);
  std::map<std::string, ActivityKernelPrefix> by_name;
  for (const auto& kernel : client.kernels) by_name[kernel.name] = kernel;
  CHECK_EQUAL(time_of(by_name["second"].start), 100);
  CHECK_EQUAL(time_of(by_name["second"].end), 150);
  CHECK_EQUAL(time_of(by_name["elsewhere"].end), 120);
  std::uint32_t id = 0;
  CHECK_EQUAL(cuptiGetStreamIdEx(at_work.c(), as_stream(other), 0, &id), CUPTI_SUCCESS);
  CHECK_EQUAL(by_name["elsewhere"].streamId, id);
  CHECK(by_name["first"].streamId != id);
  CHECK_EQUAL(cuptiGetContextId(at_work.c(), &id), CUPTI_SUCCESS);
  CHECK_EQUAL(by_name["first"].contextId, id);
  CHECK(by_name["first"].correlationId != by_name["second"].correlationId);
}

TEST("copies and fills are recorded apart from kernels") {
  const FrameworkAtWork at_work;
  const Profiling profiling;
  CUdeviceptr device = 0;
  cuMemAlloc_v2(&device, 4096);
  std::uint32_t* host = new_flag();
  cuMemsetD32Async(device, 7, 16, at_work.s());
  cuMemcpyDtoHAsync_v2(host, device, 64, at_work.s());
  fake_cuda_copy(at_work.stream, 10, 1000, 400);
  cuStreamSynchronize(at_work.s());
  cuptiActivityFlushAll(1);
  CHECK_EQUAL(client.kernels.size(), 0U);
  CHECK_EQUAL(client.fills.size(), 1U);
  CHECK_EQUAL(client.fills[0].value, 7U);
  CHECK_EQUAL(client.fills[0].bytes, 64U);
  CHECK_EQUAL(client.copies.size(), 1U);
  CHECK_EQUAL(int{client.copies[0].copyKind}, 2);
  CHECK_EQUAL(client.copies[0].start, client.fills[0].end);
  CHECK_EQUAL(client.peer_copies.size(), 1U);
  CHECK_EQUAL(time_of(client.peer_copies[0].end) - time_of(client.peer_copies[0].start), 400);
}

// libkineto registers the processor's counter as CUPTI's clock; cupti_activity.h says that times of a device
// are converted by the callback of the moment at which they are processed.
TEST("a clock that a client registers is that of all that is delivered from then on") {
  const FrameworkAtWork at_work;
  const Profiling profiling;
  fake_cuda_kernel(at_work.stream, "work", 900);
  cuCtxSynchronize();
  CHECK_EQUAL(cuptiActivityRegisterTimestampCallback(nullptr), CUPTI_ERROR_INVALID_PARAMETER);
  CHECK_EQUAL(cuptiActivityRegisterTimestampCallback([] { return std::uint64_t{5}; }), CUPTI_SUCCESS);
  cuptiActivityFlushAll(1);
  CHECK_EQUAL(client.kernels[0].end - client.kernels[0].start, 900U * FAKE_CUPTI_CYCLES_PER_NS);
  std::uint64_t stamp = 0;
  cuptiGetTimestamp(&stamp);
  CHECK(stamp >= client.kernels[0].end);
}

TEST("work that has not ended is not recorded yet") {
  const FrameworkAtWork at_work;
  const Profiling profiling;
  fake_cuda_kernel(at_work.stream, "done", 100);
  fake_cuda_kernel(at_work.stream, "running", 100);
  fake_cuda_advance_host(150);
  cuptiActivityFlushAll(0);
  CHECK_EQUAL(client.kernels.size(), 1U);
  cuStreamSynchronize(at_work.s());
  cuptiActivityFlushAll(0);
  CHECK_EQUAL(client.kernels.size(), 2U);
}

TEST("kernels of a graph are recorded at every launch") {
  const FrameworkAtWork at_work;
  const Profiling profiling;
  cuStreamBeginCapture_v2(at_work.s(), 0);
  fake_cuda_kernel(at_work.stream, "node", 30);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  cuStreamEndCapture(at_work.s(), &graph);
  cuGraphInstantiateWithFlags(&exec, graph, 0);
  cuGraphLaunch(exec, at_work.s());
  cuGraphLaunch(exec, at_work.s());
  cuStreamSynchronize(at_work.s());
  cuptiActivityFlushAll(1);
  CHECK_EQUAL(client.kernels.size(), 2U);
  CHECK_EQUAL(time_of(client.kernels[1].start), 30);
}

TEST("small buffers are asked for again and again, and no record is lost") {
  for (const std::uint32_t version : {18U, 23U, 28U, 130001U, 130500U}) {
    const FrameworkAtWork at_work;
    const Profiling profiling;
    fake_cupti_set_version(version);
    client.buffer_bytes = 1000;
    for (int i = 0; i < 50; ++i) fake_cuda_kernel(at_work.stream, "k", 10);
    cuStreamSynchronize(at_work.s());
    cuptiActivityFlushAll(1);
    CHECK_EQUAL(client.kernels.size(), 50U);
    CHECK(client.buffers >= 10);
    CHECK_EQUAL(fake_cupti_outstanding("buffers"), 0);
  }
}

TEST("a client's limit on the number of records in a buffer is kept") {
  const FrameworkAtWork at_work;
  const Profiling profiling;
  client.most_records = 3;
  for (int i = 0; i < 7; ++i) fake_cuda_kernel(at_work.stream, "k", 10);
  cuStreamSynchronize(at_work.s());
  cuptiActivityFlushAll(1);
  CHECK_EQUAL(client.buffers, 3);
  CHECK_EQUAL(client.kernels.size(), 7U);
}

TEST("a client that gives no buffer loses the records, and the loss is counted once") {
  const FrameworkAtWork at_work;
  const Profiling profiling;
  client.refuse = true;
  for (int i = 0; i < 4; ++i) fake_cuda_kernel(at_work.stream, "k", 10);
  cuStreamSynchronize(at_work.s());
  cuptiActivityFlushAll(1);
  std::size_t dropped = 0;
  CHECK_EQUAL(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
  CHECK_EQUAL(dropped, 4U);
  cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
  CHECK_EQUAL(dropped, 0U);
}

TEST("buffers may come back on a thread of the library") {
  const FrameworkAtWork at_work;
  const Profiling profiling;
  fake_cuda_kernel(at_work.stream, "k", 10);
  cuStreamSynchronize(at_work.s());
  fake_cupti_deliver();
  CHECK_EQUAL(client.kernels.size(), 1U);
  CHECK(client.delivered_on != std::this_thread::get_id());
}

TEST("only one profiler may hold the library") {
  const FrameworkAtWork at_work;
  const Profiling profiling;
  CUpti_SubscriberHandle second = nullptr;
  CHECK_EQUAL(cuptiSubscribe(&second, nullptr, nullptr), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  CHECK_EQUAL(cuptiUnsubscribe(profiling.subscriber), CUPTI_SUCCESS);
  fake_cupti_set_held_by_another(1);
  CHECK_EQUAL(cuptiSubscribe(&second, nullptr, nullptr), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  CHECK_EQUAL(fake_cupti_outstanding("subscribers"), 0);
}

TEST("CUPTI refuses and accepts what it does on cards") {
  fake_cupti_reset();
  CHECK_EQUAL(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  CHECK_EQUAL(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL), CUPTI_ERROR_NOT_COMPATIBLE);
  CHECK_EQUAL(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  CHECK_EQUAL(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  CHECK_EQUAL(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL), CUPTI_SUCCESS);
  CHECK_EQUAL(cuptiActivityEnable(38), CUPTI_SUCCESS);  // recorded elsewhere; yields nothing here
  CHECK_EQUAL(cuptiActivityEnable(53), CUPTI_ERROR_INVALID_KIND);
  CUpti_SubscriberHandle first = nullptr;
  CUpti_SubscriberHandle second = nullptr;
  CHECK_EQUAL(cuptiSubscribe(&first, nullptr, nullptr), CUPTI_SUCCESS);
  CHECK_EQUAL(cuptiSubscribe(&second, nullptr, nullptr), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  CHECK_EQUAL(cuptiUnsubscribe(first), CUPTI_SUCCESS);
  CHECK_EQUAL(cuptiUnsubscribe(first), CUPTI_SUCCESS);
  const char* name = nullptr;
  CHECK_EQUAL(cuptiGetResultString(36, &name), CUPTI_ERROR_INVALID_PARAMETER);
  fake_cupti_reset();
}

TEST_MAIN()
