#include <dlfcn.h>

#include <string>
#include <utility>

#include "check.hpp"
#include "fake_cuda_setup.hpp"

using namespace fairlap::test;

namespace {

// Which of three symbols a library exports, as text.
std::string exported(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  std::string found;
  for (const char* symbol : {"cuInit", "cuGetProcAddress", "cuGetProcAddress_v2", "fake_cuda_reset"}) {
    if (dlsym(library, symbol) != nullptr) found += std::string(symbol) + " ";
  }
  dlclose(library);
  return found;
}

}  // namespace

TEST("older drivers lack the newer ways to look functions up") {
  CHECK_EQUAL(exported(FAKE_CUDA), "cuInit cuGetProcAddress cuGetProcAddress_v2 fake_cuda_reset ");
  CHECK_EQUAL(exported(FAKE_CUDA_11), "cuInit cuGetProcAddress fake_cuda_reset ");
  CHECK_EQUAL(exported(FAKE_CUDA_10), "cuInit fake_cuda_reset ");
}

TEST("a lookup gives the newest form that the release asked for knows") {
  const FrameworkAtWork at_work;
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = -1;
  CHECK_EQUAL(cuGetProcAddress_v2("cuStreamBeginCapture", &found, 13000, 1, &status), CUDA_SUCCESS);
  CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(found == reinterpret_cast<void*>(&cuStreamBeginCapture_v2));
  CHECK_EQUAL(cuGetProcAddress_v2("cuEventElapsedTime", &found, 12000, 1, &status), CUDA_SUCCESS);
  CHECK(found == reinterpret_cast<void*>(&cuEventElapsedTime));
  CHECK_EQUAL(cuGetProcAddress_v2("cuEventElapsedTime", &found, 12080, 1, &status), CUDA_SUCCESS);
  CHECK(found == reinterpret_cast<void*>(&cuEventElapsedTime_v2));
}

TEST("a lookup for a release whose form has other parameters never gives the wrong one") {
  const FrameworkAtWork at_work;
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = -1;
  for (const auto& [name, release] :
       {std::pair{"cuMemAlloc", 3010}, std::pair{"cuStreamWaitValue32", 11060},
        std::pair{"cuCtxGetDevice", 13000}, std::pair{"cuStreamGetCtx", 12050}}) {
    CHECK_EQUAL(cuGetProcAddress_v2(name, &found, release, 1, &status), CUDA_SUCCESS);
    CHECK(found == nullptr);
    CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  }
}

TEST("a function newer than the driver, hidden, or unknown is not found") {
  const FrameworkAtWork at_work;
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = -1;
  fake_cuda_set_driver_version(12020);
  CHECK_EQUAL(cuGetProcAddress_v2("cuCtxRecordEvent", &found, 12020, 1, &status), CUDA_SUCCESS);
  CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK_EQUAL(cuGetProcAddress_v2("cuCtxRecordEvent", &found, 12050, 1, &status), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuGetProcAddress("cuCtxRecordEvent", &found, 12020, 1), CUDA_ERROR_NOT_FOUND);
  fake_cuda_hide_function("cuEventQuery");
  CHECK_EQUAL(cuGetProcAddress("cuEventQuery", &found, 2000, 1), CUDA_ERROR_NOT_FOUND);
  CHECK_EQUAL(cuGetProcAddress("cuNoSuchThing", &found, 2000, 1), CUDA_ERROR_NOT_FOUND);
  CHECK(found == nullptr);
}

TEST_MAIN()
