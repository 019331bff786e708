#include "loop/c_call.hpp"

#include <bit>
#include <cstdint>

namespace fairlap::loop {
namespace {

double as_double(std::uint64_t bits) noexcept { return std::bit_cast<double>(bits); }

template <typename Returned>
Returned called(const CCall& call) {
  const auto& integers = call.integers;
  const auto& floats = call.floats;
  if constexpr (kIntegerRegisters == 8) {
    using Function = Returned (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                                  std::uint64_t, std::uint64_t, std::uint64_t, double, double, double, double,
                                  double, double, double, double);
    return reinterpret_cast<Function>(call.function)(
        integers[0], integers[1], integers[2], integers[3], integers[4], integers[5], integers[6],
        integers[7], as_double(floats[0]), as_double(floats[1]), as_double(floats[2]), as_double(floats[3]),
        as_double(floats[4]), as_double(floats[5]), as_double(floats[6]), as_double(floats[7]));
  } else {
    using Function =
        Returned (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                     double, double, double, double, double, double, double, double);
    return reinterpret_cast<Function>(call.function)(
        integers[0], integers[1], integers[2], integers[3], integers[4], integers[5], as_double(floats[0]),
        as_double(floats[1]), as_double(floats[2]), as_double(floats[3]), as_double(floats[4]),
        as_double(floats[5]), as_double(floats[6]), as_double(floats[7]));
  }
}

}  // namespace

void call_returning_integer(void* call) {
  auto& own = *static_cast<CCall*>(call);
  own.returned = called<std::uint64_t>(own);
}

void call_returning_float(void* call) {
  auto& own = *static_cast<CCall*>(call);
  own.returned = std::bit_cast<std::uint64_t>(called<double>(own));
}

}  // namespace fairlap::loop
