#pragma once

// Whether two types mean the same to a caller: the same sizes passed in the same kind of register.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

template <class Ours, class Theirs>
constexpr bool same_shape();

template <class Ours, class Theirs>
struct SameSignature : std::false_type {};

template <class OurResult, class... Our, class TheirResult, class... Their>
  requires(sizeof...(Our) == sizeof...(Their))
struct SameSignature<OurResult(Our...), TheirResult(Their...)>
    : std::bool_constant<same_shape<OurResult, TheirResult>() && (same_shape<Our, Their>() && ...)> {};

template <class T>
constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;

template <class Ours, class Theirs>
constexpr bool same_shape() {
  if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  } else if constexpr (is_number<Ours> && is_number<Theirs>) {
    // Enumerations are int to us; their sign is the compiler's choice and no value of theirs is negative.
    constexpr bool compare_signs = std::is_integral_v<Ours> && std::is_integral_v<Theirs>;
    return sizeof(Ours) == sizeof(Theirs) &&
           (!compare_signs || std::is_signed_v<Ours> == std::is_signed_v<Theirs>);
  } else if constexpr (std::is_floating_point_v<Ours> && std::is_floating_point_v<Theirs>) {
    return sizeof(Ours) == sizeof(Theirs);
  } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using OurTarget = std::remove_pointer_t<Ours>;
    using TheirTarget = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_function_v<OurTarget> && std::is_function_v<TheirTarget>) {
      return SameSignature<OurTarget, TheirTarget>::value;
    } else if constexpr (std::is_class_v<OurTarget> && std::is_class_v<TheirTarget>) {
      return true;  // records are compared by themselves, handles have no inside
    } else {
      return std::is_const_v<OurTarget> == std::is_const_v<TheirTarget> &&
             same_shape<std::remove_cv_t<OurTarget>, std::remove_cv_t<TheirTarget>>();
    }
  } else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>) {
    // Passed by value; its fields are compared with the record.
    return sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs) &&
           std::is_trivially_copyable_v<Ours> && std::is_trivially_copyable_v<Theirs>;
  } else {
    return false;
  }
}

template <class T>
unsigned long long number(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uintptr_t>(value);
  } else {
    return static_cast<unsigned long long>(value);
  }
}

inline void report(const char* name, const char* what, unsigned long long ours, unsigned long long theirs) {
  std::printf("%s\t%s\t%llu\t%llu\n", name, what, ours, theirs);
}

template <class Ours, class Theirs>
void report_type(const char* name) {
  std::printf("%s\ttype\t%s\tthe same\n", name, same_shape<Ours, Theirs>() ? "the same" : "another");
}
