// A custom operator of ONNX Runtime: y = x / (1 + exp(-x)), which the standard operators need three nodes for.
//
//     g++ -std=c++20 -O3 -march=native -shared -fPIC custom_ops.cc -o custom_ops.so
//
// ONNX Runtime's package for Python brings no headers. With those of a release, include onnxruntime_c_api.h in the place
// of the declarations below, which have what is used of its interface. Its table of functions only grows at the end.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using Function = void (*)();
using Table = const Function*;

struct Base {
  Table (*table)(std::uint32_t version);
  const char* (*version)();
};

// Places in the table, whose first version ends with ReleaseCustomOpDomain at 101.
enum Place : std::size_t {
  kCreateCustomOpDomain = 26,
  kCustomOpDomainAdd = 27,
  kAddCustomOpDomain = 28,
  kGetTensorMutableData = 51,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTensorTypeAndShape = 65,
  kContextGetInput = 90,
  kContextGetOutput = 91,
  kReleaseTensorTypeAndShape = 99,
};

constexpr std::uint32_t kVersion = 8;
constexpr int kFloat = 1, kRequired = 0;

struct Kernel {
  Table table;
};

template <typename Result, typename... Arguments>
Result call(Table table, Place place, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(table[place])(arguments...);
}

struct Operator {
  std::uint32_t version;
  void* (*create)(const Operator*, Table, const void* info);
  const char* (*name)(const Operator*);
  const char* (*provider)(const Operator*);
  int (*input_type)(const Operator*, std::size_t);
  std::size_t (*inputs)(const Operator*);
  int (*output_type)(const Operator*, std::size_t);
  std::size_t (*outputs)(const Operator*);
  void (*compute)(void* kernel, void* context);
  void (*destroy)(void* kernel);
  int (*input_kind)(const Operator*, std::size_t);
  int (*output_kind)(const Operator*, std::size_t);
};

void compute(void* kernel, void* context) {
  const Table table = static_cast<Kernel*>(kernel)->table;
  const void* input = nullptr;
  void *shape = nullptr, *output = nullptr;
  float *from = nullptr, *to = nullptr;
  call<void*>(table, kContextGetInput, context, std::size_t{0}, &input);
  call<void*>(table, kGetTensorTypeAndShape, input, &shape);
  std::size_t rank = 0;
  call<void*>(table, kGetDimensionsCount, shape, &rank);
  std::vector<std::int64_t> sizes(rank);
  call<void*>(table, kGetDimensions, shape, sizes.data(), rank);
  call<void>(table, kReleaseTensorTypeAndShape, shape);
  call<void*>(table, kContextGetOutput, context, std::size_t{0}, sizes.data(), rank, &output);
  call<void*>(table, kGetTensorMutableData, const_cast<void*>(input), reinterpret_cast<void**>(&from));
  call<void*>(table, kGetTensorMutableData, output, reinterpret_cast<void**>(&to));
  std::size_t count = 1;
  for (const auto size : sizes) count *= static_cast<std::size_t>(size);
  for (std::size_t each = 0; each < count; ++each) to[each] = from[each] / (1.0f + std::exp(-from[each]));
}

const Operator kSilu = {
    .version = kVersion,
    .create = [](const Operator*, Table table, const void*) -> void* { return new Kernel{table}; },
    .name = [](const Operator*) { return "Silu"; },
    .provider = [](const Operator*) -> const char* { return nullptr; },  // the processor
    .input_type = [](const Operator*, std::size_t) { return kFloat; },
    .inputs = [](const Operator*) { return std::size_t{1}; },
    .output_type = [](const Operator*, std::size_t) { return kFloat; },
    .outputs = [](const Operator*) { return std::size_t{1}; },
    .compute = compute,
    .destroy = [](void* kernel) { delete static_cast<Kernel*>(kernel); },
    .input_kind = [](const Operator*, std::size_t) { return kRequired; },
    .output_kind = [](const Operator*, std::size_t) { return kRequired; },
};

}  // namespace

// ONNX Runtime looks for this name. A status that is not null is an error.
extern "C" void* RegisterCustomOps(void* options, const Base* base) {
  const Table table = base->table(kVersion);
  static void* domain = nullptr;
  if (domain == nullptr) {
    if (void* failed = call<void*>(table, kCreateCustomOpDomain, "example.ops", &domain)) return failed;
    if (void* failed = call<void*>(table, kCustomOpDomainAdd, domain, &kSilu)) return failed;
  }
  return call<void*>(table, kAddCustomOpDomain, options, domain);
}
