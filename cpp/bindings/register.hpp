#pragma once

#include <pybind11/pybind11.h>

// One function per part of the module.
void register_clock(pybind11::module_& module);
void register_loop(pybind11::module_& module);
void register_cuda(pybind11::module_& module);
void register_cuda_streams(pybind11::module_& module);
void register_cuda_activity(pybind11::module_& module);
void register_copy_trials(pybind11::module_& module);
void register_cuda_roofs(pybind11::module_& module);
void register_cuda_sharing(pybind11::module_& module);
void register_telemetry(pybind11::module_& module);
void register_feed(pybind11::module_& module);
void register_generation(pybind11::module_& module);
void register_load(pybind11::module_& module);
void register_roofs(pybind11::module_& module);
