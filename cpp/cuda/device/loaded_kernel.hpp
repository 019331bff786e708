#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cuda/stream/own_stream.hpp"

namespace fairlap::cuda {

struct LaunchShape {
  std::array<unsigned int, 3> grid{1, 1, 1};
  std::array<unsigned int, 3> block{1, 1, 1};
  unsigned int shared_bytes = 0;
};

// The bytes of a value, or the size of a buffer of zeros in the device's memory.
using KernelArgument = std::variant<std::string, std::size_t>;

// One kernel of a PTX or cubin image with its arguments in place, launched on a stream of ours, which must
// outlive it.
//
// A launch needs the context to be current on its thread: between enter() and leave() it is, so that a timed
// launch is the driver's launch and nothing else.
class LoadedKernel {
 public:
  LoadedKernel(const OwnStream& stream, std::string image, const std::string& name, const LaunchShape& shape,
               const std::vector<KernelArgument>& arguments);
  ~LoadedKernel();

  LoadedKernel(const LoadedKernel&) = delete;  // The arguments point into it.
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  void enter() const { driver_.cuCtxPushCurrent(stream_.context().handle()); }
  void leave() const {
    CUcontext popped = nullptr;
    static_cast<void>(driver_.cuCtxPopCurrent.code_of(&popped));
  }

  void launch();
  void wait() const { driver_.cuCtxSynchronize(); }

 private:
  void place(const std::vector<KernelArgument>& arguments);

  const OwnStream& stream_;
  const Driver& driver_;
  std::string image_;
  LaunchShape shape_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  std::vector<std::unique_ptr<DeviceMemory>> buffers_;
  std::vector<std::string> values_;
  std::vector<void*> parameters_;
};

}  // namespace fairlap::cuda
