#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fairlap::loop {

// How many arguments of each kind the calling convention passes in registers. A callee does not look at the
// registers of arguments that it does not have, so every function of few enough arguments can be called
// alike.
#if defined(__x86_64__) && !defined(_WIN32)
inline constexpr std::size_t kIntegerRegisters = 6;
#elif defined(__aarch64__)
inline constexpr std::size_t kIntegerRegisters = 8;
#else
inline constexpr std::size_t kIntegerRegisters = 0;  // no convention is known, and no call is offered
#endif
inline constexpr std::size_t kFloatRegisters = 8;

// A C function and the values that its registers get. Python lays it out as 64-bit words.
struct CCall {
  std::uint64_t function;
  std::array<std::uint64_t, 8> integers;
  std::array<std::uint64_t, kFloatRegisters> floats;  // the bits of a double, or of a float in the lower half
  std::uint64_t returned;                             // the bits of what the last call returned
};

// Each calls the function of the CCall that it is given, once. What a function that returns nothing has
// returned is whatever its register held.
void call_returning_integer(void* call);
void call_returning_float(void* call);

}  // namespace fairlap::loop
