#include <cstddef>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

ffi::Error Axpy(float a, ffi::Buffer<ffi::F32> x, ffi::Buffer<ffi::F32> y, ffi::ResultBuffer<ffi::F32> out) {
  const float* const from = x.typed_data();
  const float* const added = y.typed_data();
  float* const to = out->typed_data();
  for (std::size_t each = 0; each < x.element_count(); ++each) to[each] = a * from[each] + added[each];
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(axpy, Axpy,
                              ffi::Ffi::Bind()
                                  .Attr<float>("a")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
