#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "cuda/driver/device_code.hpp"
#include "tests/check.hpp"
#include "tests/fake_cuda_setup.hpp"

using namespace fairlap::test;

namespace {

constexpr unsigned int kLazyPeerAccess = 1;
constexpr std::size_t kBlock = std::size_t{2} << 20;

CUdeviceptr allocated(std::size_t bytes) {
  CUdeviceptr memory = 0;
  CHECK_EQUAL(cuMemAlloc_v2(&memory, bytes), CUDA_SUCCESS);
  return memory;
}

CUipcMemHandle handle_of(CUdeviceptr memory) {
  CUipcMemHandle handle{};
  CHECK_EQUAL(cuIpcGetMemHandle(&handle, memory), CUDA_SUCCESS);
  return handle;
}

void write_word(CUdeviceptr to, std::uint32_t word) {
  CHECK_EQUAL(cuMemsetD32Async(to, word, 1, nullptr), CUDA_SUCCESS);
  CHECK_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
}

std::uint32_t word_at(CUdeviceptr from) {
  std::uint32_t word = 0;
  CHECK_EQUAL(cuMemcpyDtoH_v2(&word, from, sizeof word), CUDA_SUCCESS);
  return word;
}

CUresult opened(CUdeviceptr& memory, const CUipcMemHandle& handle) {
  return cuIpcOpenMemHandle_v2(&memory, handle, kLazyPeerAccess);
}

// A second process with its own fake driver. What fails in it fails the test, and it ends when its pipe
// closes.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<void()>& body) {
    CHECK_EQUAL(::pipe(done_), 0);
    CHECK_EQUAL(::pipe(leave_), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(leave_[1]);
      const FrameworkAtWork at_work;
      char result = 'y';
      try {
        body();
      } catch (const std::exception& error) {
        std::fputs(error.what(), stderr);
        result = 'n';
      }
      static_cast<void>(::write(done_[1], &result, 1));
      static_cast<void>(::read(leave_[0], &result, 1));
      std::_Exit(0);
    }
    ::close(leave_[0]);
    char result = 0;
    static_cast<void>(::read(done_[0], &result, 1));
    is_right_ = result == 'y';
  }
  ~OtherProcess() { end(); }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  void end() {
    if (pid_ <= 0) return;
    ::close(leave_[1]);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] bool is_right() const { return is_right_; }

 private:
  int done_[2] = {};
  int leave_[2] = {};
  pid_t pid_ = 0;
  bool is_right_ = false;
};

}  // namespace

TEST("what one process writes into memory that another exported is there for both") {
  const FrameworkAtWork at_work;
  const CUdeviceptr memory = allocated(kBlock);
  write_word(memory, 7);
  const CUipcMemHandle handle = handle_of(memory);
  const OtherProcess other([&] {
    CUdeviceptr there = 0;
    CHECK_EQUAL(opened(there, handle), CUDA_SUCCESS);
    CHECK_EQUAL(word_at(there), 7u);
    write_word(there, 8);
  });
  CHECK(other.is_right());
  CHECK_EQUAL(word_at(memory), 8u);
}

TEST("a process cannot open its own handle, a forged one, or one of freed memory") {
  const FrameworkAtWork at_work;
  const CUdeviceptr memory = allocated(kBlock);
  const CUipcMemHandle handle = handle_of(memory);
  CHECK(std::memcmp(&handle, std::vector<char>(sizeof handle).data(), sizeof handle) != 0);
  CUdeviceptr there = 0;
  CHECK_EQUAL(opened(there, handle), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(opened(there, CUipcMemHandle{}), CUDA_ERROR_INVALID_HANDLE);
  CHECK_EQUAL(cuIpcOpenMemHandle_v2(&there, handle, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuMemFree_v2(memory), CUDA_SUCCESS);
  const OtherProcess other([&] {
    CUdeviceptr freed = 0;
    CHECK_EQUAL(opened(freed, handle), CUDA_ERROR_INVALID_HANDLE);
  });
  CHECK(other.is_right());
}

TEST("a handle that is opened twice gives one address, and has to be closed twice") {
  const FrameworkAtWork at_work;
  const CUipcMemHandle handle = handle_of(allocated(kBlock));
  const OtherProcess other([&] {
    CUdeviceptr once = 0;
    CUdeviceptr twice = 0;
    CHECK_EQUAL(opened(once, handle), CUDA_SUCCESS);
    CHECK_EQUAL(opened(twice, handle), CUDA_SUCCESS);
    CHECK_EQUAL(once, twice);
    CHECK_EQUAL(cuMemFree_v2(once), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuIpcCloseMemHandle(once), CUDA_SUCCESS);
    CHECK_EQUAL(word_at(once), 0u);
    CHECK_EQUAL(cuIpcCloseMemHandle(once), CUDA_SUCCESS);
    CHECK_EQUAL(cuIpcCloseMemHandle(once), CUDA_ERROR_INVALID_VALUE);
  });
  CHECK(other.is_right());
}

TEST("memory stays as long as a living process has it open") {
  const FrameworkAtWork at_work;
  const CUdeviceptr memory = allocated(kBlock);
  const CUipcMemHandle handle = handle_of(memory);
  OtherProcess other([&] {
    CUdeviceptr there = 0;
    CHECK_EQUAL(opened(there, handle), CUDA_SUCCESS);
  });
  CHECK(other.is_right());
  CHECK(cuMemFree_v2(memory) != CUDA_SUCCESS);
  other.end();
  CHECK_EQUAL(cuMemFree_v2(memory), CUDA_SUCCESS);
}

TEST("opening a small allocation exposes its neighbours in the block, and a whole block has none") {
  const FrameworkAtWork at_work;
  const CUdeviceptr secret = allocated(1024);
  const CUdeviceptr shared = allocated(1024);
  const CUdeviceptr whole = allocated(kBlock);
  CHECK_EQUAL(shared - secret, 1024u);
  write_word(secret, 99);
  const CUipcMemHandle handle = handle_of(shared);
  const CUipcMemHandle of_whole = handle_of(whole);
  const OtherProcess other([&] {
    CUdeviceptr there = 0;
    CHECK_EQUAL(opened(there, handle), CUDA_SUCCESS);
    CHECK_EQUAL(word_at(there - 1024), 99u);
    CHECK_EQUAL(cuIpcCloseMemHandle(there), CUDA_SUCCESS);
    CHECK_EQUAL(opened(there, of_whole), CUDA_SUCCESS);
    std::uint32_t word = 0;
    CHECK_EQUAL(cuMemcpyDtoH_v2(&word, secret, sizeof word), CUDA_ERROR_INVALID_VALUE);
  });
  CHECK(other.is_right());
}

TEST("a kernel pauses while another process has work on the device") {
  const FrameworkAtWork at_work;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  cuModuleLoadData(&module, kDeviceCode);
  CHECK_EQUAL(cuModuleGetFunction(&kernel, module, kLongestPauseKernel), CUDA_SUCCESS);
  const CUdeviceptr longest = allocated(kBlock);
  std::uint64_t length_ns = 1000;
  const auto pause_ns = [&] {
    CUdeviceptr to = longest;
    void* parameters[] = {&length_ns, &to};
    CHECK_EQUAL(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, at_work.s(), parameters, nullptr), CUDA_SUCCESS);
    CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_SUCCESS);
    return word_at(longest);
  };
  CHECK_EQUAL(pause_ns(), 32u);
  OtherProcess other([] {
    const std::uint64_t stream = fake_cuda_create_stream(fake_cuda_current_context(), 1);
    CHECK_EQUAL(fake_cuda_kernel(stream, "left behind", 1'000'000'000), 0);
    CHECK_EQUAL(cuStreamQuery(as_stream(stream)), CUDA_ERROR_NOT_READY);
  });
  CHECK(other.is_right());
  CHECK_EQUAL(pause_ns(), 2'000'000u);
  other.end();
  CHECK_EQUAL(pause_ns(), 32u);
}

TEST_MAIN()
