#include "cuda/device/device_identity.hpp"
#include "cuda/stream/borrowed_stream.hpp"
#include "tests/check.hpp"
#include "tests/cuda/cuda_at_work.hpp"

using namespace fairlap;
using namespace fairlap::test;
using cuda::BorrowedStream;

namespace {

std::string refusal(const EngineAtWork& at_work, std::optional<std::uintptr_t> stream, int device = -1) {
  return message_of([&] { BorrowedStream::borrow(*at_work.driver, stream, device); });
}

}  // namespace

TEST("a stream is borrowed with its own context and device") {
  const EngineAtWork at_work;
  const BorrowedStream stream = BorrowedStream::borrow(*at_work.driver, at_work.stream, -1);
  CHECK(stream.context().handle() == at_work.c());
  CHECK_EQUAL(stream.context().device(), 0);
  CHECK(stream.known());
}

TEST("borrowing makes no context and leaves the current one as it was") {
  const EngineAtWork at_work;
  const std::uint64_t other = fake_cuda_create_context(0);
  fake_cuda_make_current(other);
  BorrowedStream::borrow(*at_work.driver, at_work.stream, -1);
  CHECK_EQUAL(fake_cuda_current_context(), other);
  CHECK_EQUAL(fake_cuda_call_count("cuDevicePrimaryCtxRetain"), 0);
  CHECK_EQUAL(fake_cuda_call_count("cuCtxCreate_v2"), 0);
}

TEST("a default stream is of the current context") {
  const EngineAtWork at_work;
  const std::uint64_t other = fake_cuda_create_context(0);
  fake_cuda_make_current(other);
  for (const std::uintptr_t address : {0, 1, 2}) {
    CHECK(BorrowedStream::borrow(*at_work.driver, address, -1).context().handle() ==
          reinterpret_cast<CUcontext>(other));
  }
}

TEST(
    "without a current context a default stream is of the primary one, held only for as long as it is used") {
  const EngineAtWork at_work;
  fake_cuda_make_current(0);
  {
    const BorrowedStream stream = BorrowedStream::borrow(*at_work.driver, 0, 0);
    CHECK(stream.context().handle() == at_work.c());
    CHECK_EQUAL(fake_cuda_outstanding("primary_retains"), 1);
  }
  CHECK_EQUAL(fake_cuda_outstanding("primary_retains"), 0);
}

TEST("the current context of another device is not taken for the one asked for") {
  const EngineAtWork at_work;
  fake_cuda_set_device_count(2);
  const std::uint64_t second = fake_cuda_activate_primary_context(1);
  fake_cuda_make_current(at_work.context);
  const BorrowedStream stream = BorrowedStream::borrow(*at_work.driver, 0, 1);
  CHECK(stream.context().handle() == reinterpret_cast<CUcontext>(second));
  CHECK_EQUAL(stream.context().device(), 1);
}

TEST("an unused device is not started") {
  const EngineAtWork at_work;
  fake_cuda_set_device_count(2);
  CHECK(contains(refusal(at_work, 0, 1), "nothing has used CUDA device 1"));
  CHECK_EQUAL(fake_cuda_call_count("cuDevicePrimaryCtxRetain"), 0);
}

TEST("a stream of another device than the one named is refused") {
  const EngineAtWork at_work;
  fake_cuda_set_device_count(2);
  CHECK(contains(refusal(at_work, at_work.stream, 1), "belongs to CUDA device 0"));
  CHECK(contains(refusal(at_work, at_work.stream, 7), "no CUDA device 7"));
  CHECK(contains(refusal(at_work, 0, 7), "no CUDA device 7"));
}

TEST("a dead stream is refused, and so is an address that was never one") {
  const EngineAtWork at_work;
  const std::uint64_t stream = fake_cuda_create_stream(at_work.context, 1);
  fake_cuda_destroy_stream(stream);
  CHECK(contains(refusal(at_work, stream), "is dead"));
  const std::uint64_t context = fake_cuda_create_context(0);
  const std::uint64_t orphan = fake_cuda_create_stream(context, 1);
  fake_cuda_destroy_context(context);
  CHECK(contains(refusal(at_work, orphan), "is dead"));
  CHECK(contains(refusal(at_work, 3), "not a CUDA stream"));
  CHECK(contains(refusal(at_work, 0x1000), "not a CUDA stream"));
  CHECK(contains(refusal(at_work, at_work.stream + 1), "not a CUDA stream"));
  CHECK(contains(refusal(at_work, static_cast<std::uintptr_t>(-16)), "not a CUDA stream"));
}

TEST("a stream that is capturing is not timed on") {
  const EngineAtWork at_work;
  CHECK_EQUAL(cuStreamBeginCapture_v2(at_work.s(), 2), CUDA_SUCCESS);
  ScriptedWork work(kernel_of(at_work.stream, 1000));
  CHECK(contains(message_of([&] { time_it(at_work, work, quick_settings(5)); }), "capturing"));
  CHECK_EQUAL(work.calls, 0);
  CUgraph graph = nullptr;
  CHECK_EQUAL(cuStreamEndCapture(at_work.s(), &graph), CUDA_SUCCESS);
}

TEST("a machine without a driver is an answer with a reason") {
  setenv("FAIRLAP_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  const cuda::Driver::Opened opened = cuda::Driver::open();
  CHECK(!opened.driver);
  CHECK(contains(opened.absent_because, "/nowhere/libcuda.so.1 could not be loaded"));
}

TEST("a driver that cannot start gives the reason") {
  const EngineAtWork at_work;
  fake_cuda_fail("cuInit", 0, CUDA_ERROR_NO_DEVICE);
  const cuda::Driver::Opened opened = cuda::Driver::open();
  CHECK(!opened.driver);
  CHECK(contains(opened.absent_because, "CUDA_ERROR_NO_DEVICE"));
  CHECK(contains(opened.absent_because, "CUDA_VISIBLE_DEVICES"));
  fake_cuda_forget_faults();
}

TEST("a driver without an essential function is refused, one without an optional one is not") {
  const EngineAtWork at_work;
  fake_cuda_hide_function("cuCtxRecordEvent");
  cuda::Driver::Opened opened = cuda::Driver::open();
  CHECK(opened.driver && !opened.driver->cuCtxRecordEvent.present());
  CHECK(contains(opened.driver->cuCtxRecordEvent.absent_because(), "12.5"));
  fake_cuda_hide_function("cuEventRecord");
  opened = cuda::Driver::open();
  CHECK(!opened.driver);
  CHECK(contains(opened.absent_because, "cuEventRecord"));
  fake_cuda_reset();
}

TEST("where several devices are in use and none is named or current, none is guessed") {
  const EngineAtWork at_work;
  fake_cuda_set_device_count(3);
  const std::uint64_t third = fake_cuda_activate_primary_context(2);
  fake_cuda_make_current(0);
  const std::string message = refusal(at_work, std::nullopt);
  CHECK(contains(message, "0 and 2") && contains(message, "device="));
  CHECK(BorrowedStream::borrow(*at_work.driver, std::nullopt, 2).context().handle() ==
        reinterpret_cast<CUcontext>(third));
  CHECK_EQUAL(fake_cuda_outstanding("primary_retains"), 0);
}

TEST("the only device in use is the one meant, whichever it is") {
  const EngineAtWork at_work;
  fake_cuda_set_device_count(2);
  fake_cuda_activate_primary_context(1);
  fake_cuda_deactivate_primary_context(0);
  fake_cuda_make_current(0);
  CHECK_EQUAL(BorrowedStream::borrow(*at_work.driver, std::nullopt, -1).context().device(), 1);
}

TEST("a device is called by its slot and its UUID, whatever number CUDA gives it") {
  const EngineAtWork at_work;
  fake_cuda_set_device_count(2);
  fake_cuda_set_device_slot(0, 5);
  fake_cuda_set_device_uuid(1, "0123456789abcdef0123456789abcdef");
  const auto found = cuda::identify_devices(*at_work.driver);
  CHECK_EQUAL(found.size(), 2U);
  CHECK_EQUAL(found[0].pci_bus_id, std::string("0000:06:00.0"));
  CHECK_EQUAL(found[0].uuid, std::string("00000000-0000-0000-0000-000000000005"));
  CHECK_EQUAL(found[1].uuid, std::string("01234567-89ab-cdef-0123-456789abcdef"));
  fake_cuda_hide_function("cuDeviceGetUuid");
  CHECK_EQUAL(cuda::identify_devices(*open_fake_driver())[0].uuid, std::string());
  fake_cuda_reset();
}

TEST_MAIN()
