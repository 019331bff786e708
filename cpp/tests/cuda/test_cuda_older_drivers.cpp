#include "tests/check.hpp"
#include "tests/cuda/cuda_at_work.hpp"

// Drivers that look functions up in older ways: by cuGetProcAddress of CUDA 11.3, or by exported names alone.

using namespace fairlap;
using namespace fairlap::test;

namespace {

cuda::Driver::Opened opened_from(const char* path) {
  setenv("FAIRLAP_LIBCUDA", path, 1);
  return cuda::Driver::open();
}

}  // namespace

TEST("every way of looking functions up finds all that timing needs") {
  for (const char* path : {FAIRLAP_FAKE_CUDA, FAIRLAP_FAKE_CUDA_11, FAIRLAP_FAKE_CUDA_10}) {
    const cuda::Driver::Opened opened = opened_from(path);
    CHECK_EQUAL(opened.absent_because, std::string());
    CHECK(opened.driver != nullptr);
    CHECK(opened.driver->version() > 0);
    CHECK(opened.driver->cuStreamWaitValue32.present());
    CHECK(opened.driver->cuGraphLaunch.present());
    CHECK_EQUAL(opened.driver->path(), std::string(path));
  }
}

TEST_MAIN()
