#include <cstdlib>
#include <string_view>

#include "cuda/roofs/roof_kernel.hpp"
#include "fakes/cuda/capture.hpp"
#include "fakes/cuda/entry.hpp"
#include "fakes/cuda/lookup.hpp"

// Modules of PTX text. The fake reads the header, the names of the entries and what their rounds repeat;
// bodies are not run.
namespace fairlap::fakes {
namespace {

// The text after `directive` up to the end of its word, or empty.
std::string_view word_after(std::string_view text, std::string_view directive, std::size_t from = 0) {
  const std::size_t found = text.find(directive, from);
  if (found == std::string_view::npos) return {};
  const std::size_t begin = text.find_first_not_of(" \t", found + directive.size());
  if (begin == std::string_view::npos) return {};
  const std::size_t end = text.find_first_of(" \t\r\n(,;", begin);
  return text.substr(begin, end - begin);
}

// CUDA 11.x reads PTX up to 7.x, 12.x up to 8.x, 13.x up to 9.x.
int newest_ptx(int driver_version) {
  const int major = driver_version / 1000 - 4;
  return major * 10 + driver_version % 1000 / 10;
}

CUresult check_header(const World& w, const Context& context, std::string_view ptx) {
  const std::string_view version = word_after(ptx, ".version");
  const std::string_view target = word_after(ptx, ".target");
  const std::size_t dot = version.find('.');
  if (dot == std::string_view::npos || !target.starts_with("sm_")) return CUDA_ERROR_INVALID_PTX;
  const int asked = std::atoi(std::string(version.substr(0, dot)).c_str()) * 10 +
                    std::atoi(std::string(version.substr(dot + 1)).c_str());
  if (asked > newest_ptx(w.driver_version)) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  const auto& attributes = w.devices[static_cast<std::size_t>(context.device)].attributes;
  const int capability = attributes.at(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                         attributes.at(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  const int needed = std::atoi(std::string(target.substr(3)).c_str());
  const bool is_for_one_architecture = target.ends_with('a');
  const bool fits = is_for_one_architecture ? needed == capability : needed <= capability;
  return fits ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

// The first in the text, for code with one entry.
Round round_in(std::string_view ptx) {
  Round round;
  const std::size_t begin = ptx.find("\nROUND:");
  const std::size_t end = begin == std::string_view::npos ? begin : ptx.find("bra ROUND", begin);
  if (end == std::string_view::npos) return round;
  std::string_view body = ptx.substr(begin, end - begin);
  for (std::size_t at = body.find('\n', 1); at != std::string_view::npos; at = body.find('\n', at + 1)) {
    if (const std::string_view operation = word_after(body, "\n", at); !operation.empty())
      ++round[std::string(operation)];
  }
  return round;
}

// How many sums a thread of a check says that it has compared.
std::uint32_t sums_in(std::string_view ptx) {
  return static_cast<std::uint32_t>(std::atoi(std::string(word_after(ptx, "[%out+4],")).c_str()));
}

}  // namespace

FAKE_EXPORT CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  return entry("cuModuleLoadData", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult error = check_unsafe_call(w); error != CUDA_SUCCESS) return error;
    if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::string_view ptx(static_cast<const char*>(image));
    if (!w.has_jit) return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    if (const CUresult error = check_header(w, *context, ptx); error != CUDA_SUCCESS) return error;
    Module module;
    module.context = context->handle;
    constexpr std::string_view kEntry = ".entry";
    for (std::size_t at = ptx.find(kEntry); at != std::string_view::npos; at = ptx.find(kEntry, at + 1)) {
      const std::string name(word_after(ptx, kEntry, at));
      const Handle function = w.new_handle();
      module.functions[name] = function;
      w.functions[function] = intern(name);
      if (name == kArithmeticRoofEntry || name == kRoofCheckEntry) w.rounds[function] = round_in(ptx);
      if (name == kRoofCheckEntry) w.checked_sums[function] = sums_in(ptx);
    }
    const Handle handle = w.new_handle();
    w.modules[handle] = std::move(module);
    *out = pointer<CUmodule>(handle);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuModuleUnload(CUmodule module) {
  return entry("cuModuleUnload", [&](World& w, Lock&) -> CUresult {
    if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
    const auto found = w.modules.find(number(module));
    if (found == w.modules.end()) {
      note_use(w, number(module));
      return CUDA_ERROR_INVALID_HANDLE;
    }
    for (const auto& [name, function] : found->second.functions) {
      w.functions.erase(function);
      w.rounds.erase(function);
      w.checked_sums.erase(function);
      w.most_shared_bytes.erase(function);
      gave_back(w, "function", function);
    }
    w.modules.erase(found);
    gave_back(w, "module", number(module));
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  return entry("cuModuleGetFunction", [&](World& w, Lock&) -> CUresult {
    if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
    const auto found = w.modules.find(number(module));
    if (found == w.modules.end()) {
      note_use(w, number(module));
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto function = found->second.functions.find(name);
    if (function == found->second.functions.end()) return CUDA_ERROR_NOT_FOUND;
    *out = pointer<CUfunction>(function->second);
    return CUDA_SUCCESS;
  });
}

}  // namespace fairlap::fakes
