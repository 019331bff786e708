#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "feed/dlpack_abi.hpp"

namespace fairlap::bindings {

// A structure in a capsule of the agreed name. Who takes it renames the capsule and calls the deleter
// when done; an unused capsule gives the structure back itself.
template <class Managed>
struct CapsuleName;
template <>
struct CapsuleName<feed::dlpack::Managed> {
  static constexpr const char* kName = "dltensor";
};
template <>
struct CapsuleName<feed::dlpack::ManagedVersioned> {
  static constexpr const char* kName = "dltensor_versioned";
};

template <class Managed>
pybind11::capsule dlpack_capsule(Managed* managed) {
  PyObject* const capsule = PyCapsule_New(managed, CapsuleName<Managed>::kName, [](PyObject* dying) {
    if (PyCapsule_IsValid(dying, CapsuleName<Managed>::kName) == 0) return;
    auto* const left = static_cast<Managed*>(PyCapsule_GetPointer(dying, CapsuleName<Managed>::kName));
    left->deleter(left);
  });
  if (capsule == nullptr) {
    managed->deleter(managed);
    throw pybind11::error_already_set();
  }
  return pybind11::reinterpret_steal<pybind11::capsule>(capsule);
}

}  // namespace fairlap::bindings
