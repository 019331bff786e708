// A worker without Python: one linear layer, y = x wᵀ, in plain C++20 and nothing else. It speaks
// docs/reference/worker-protocol.md and so races against frameworks. Build: c++ -std=c++20 -O3 -o worker
// worker.cpp
//
// It serves any model that is one such layer: the options "input", "weight" and "output" say what its tensors
// are called, "x", "w" and "y" when nothing is said.

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json.hpp"
#include "safetensors.hpp"
#include "sha256.hpp"

namespace {

using namespace worker;

// --- the work ---------------------------------------------------------------------------------------------

// The weight is kept as (in, out), so that the innermost loop runs along memory and the compiler vectorises
// it.
struct Layer {
  Matrix transposed;

  explicit Layer(const Matrix& weight) : transposed{weight.columns, weight.rows, weight.values} {
    for (std::int64_t out = 0; out < weight.rows; ++out)
      for (std::int64_t in = 0; in < weight.columns; ++in)
        transposed.values[static_cast<std::size_t>(in * weight.rows + out)] =
            weight.values[static_cast<std::size_t>(out * weight.columns + in)];
  }
  void run(const Matrix& x, Matrix& y) const {
    const std::int64_t outputs = transposed.columns;
    for (std::int64_t row = 0; row < x.rows; ++row) {
      float* __restrict sums = y.values.data() + row * outputs;
      std::fill(sums, sums + outputs, 0.0F);
      for (std::int64_t in = 0; in < x.columns; ++in) {
        const float factor = x.values[static_cast<std::size_t>(row * x.columns + in)];
        const float* __restrict weights = transposed.values.data() + in * outputs;
        for (std::int64_t out = 0; out < outputs; ++out) sums[out] += factor * weights[out];
      }
    }
  }
};

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Timed calls that are no samples, each on a copy of one set of inputs in which one element is a little
// larger.
class DrawnCalls {
 public:
  explicit DrawnCalls(const Json& request)
      : calls_(request.at("drawn").items), path_(request.text_or("drawn_path", "")) {}

  // Makes the calls whose time has come, and returns the nanoseconds that this took.
  std::int64_t make_those_due(double share, const Layer& layer, const std::vector<Matrix>& sets,
                              const std::vector<std::string>& unseen, const std::string& input, Matrix& y,
                              const std::string& output) {
    const std::int64_t began_ns = now_ns();
    for (; made_ < calls_.size() && share >= calls_[made_].at("at").as_number; ++made_) {
      const Json& call = calls_[made_];
      const auto number = static_cast<std::size_t>(call.at("inputs").as_number);
      const Matrix x =
          number < sets.size() ? sets[number] : matrix_in(unseen.at(number - sets.size()), input);
      const std::int64_t start_ns = now_ns();
      layer.run(x, y);
      const std::int64_t took_ns = now_ns() - start_ns;
      outputs_[std::to_string(made_).append("/").append(output)] = y;
      reported_ << (made_ == 0 ? "" : ",") << "{\"number\":" << made_ << ",\"call_ns\":" << took_ns << "}";
      write_matrices(path_, outputs_);
    }
    return now_ns() - began_ns;
  }
  std::string reported() const { return reported_.str(); }

 private:
  std::vector<Json> calls_;
  std::string path_;
  std::ostringstream reported_;
  std::map<std::string, Matrix> outputs_;
  std::size_t made_ = 0;
};

// --- the conversation -------------------------------------------------------------------------------------

class Worker {
 public:
  Worker(int read_fd, int write_fd) : read_fd_(read_fd), write_fd_(write_fd) {}

  void serve() {
    say("{\"type\":\"hello\",\"protocol\":3,\"language\":\"c++\",\"pid\":" + std::to_string(getpid()) + "}");
    std::string line;
    while (next_line(line)) {
      const Json request = JsonReader(line).value();
      phase_ = request.at("type").as_text;
      if (phase_ == "prepare") {
        prepare(request);
      } else if (phase_ == "answer") {
        answer(request);
      } else if (phase_ == "measure") {
        measure(request);
      } else if (phase_ == "quit") {
        rusage used{};
        getrusage(RUSAGE_SELF, &used);
        say("{\"type\":\"ended\",\"memory\":{\"bytes\":{\"peak\":" + std::to_string(used.ru_maxrss * 1024) +
            "}}}");
        return;
      } else {
        throw std::runtime_error("it knows no request " + phase_);
      }
    }
  }

  void fail(const char* kind, const char* message) {
    say("{\"type\":\"failed\",\"phase\":" + quoted(phase_) + ",\"kind\":" + quoted(kind) +
        ",\"message\":" + quoted(message) + "}");
  }

 private:
  void prepare(const Json& request) {
    if (request.text_or("mode", "infer") != "infer") throw Unsupported("it does not differentiate");
    if (request.text_or("precision", "fp32") != "fp32") throw Unsupported("it computes in float32 only");
    if (request.at("threads").as_number != 1) throw Unsupported("it has one thread");
    phase_ = "build";
    say("{\"type\":\"begin\",\"phase\":\"build\"}");
    const std::int64_t began_ns = now_ns();
    const Json& options = request.at("options");
    output_ = options.text_or("output", "y");
    const std::string name = options.text_or("weight", "w"), input = options.text_or("input", "x");
    const Matrix weight = matrix_in(request.at("weights").as_text, name);
    sets_ = {matrix_in(request.at("inputs").as_text, input), matrix_in(request.at("changed").as_text, input)};
    input_ = input;
    for (const Json& file : request.at("unseen").items) unseen_.push_back(file.as_text);
    for (const Matrix& matrix : sets_)
      if (matrix.columns != weight.columns) throw Unsupported("the inputs do not fit the weight");
    layer_.emplace_back(weight);
    say_phase("build", now_ns() - began_ns);
    say("{\"type\":\"prepared\",\"version\":\"1.0\",\"in_force\":{\"threads\":\"1\",\"precision\":\"fp32\"},"
        "\"weights_hash\":" +
        quoted(hash_of(name, weight)) + "}");
  }

  void answer(const Json& request) {
    const Matrix& x = sets_.at(request.at("which").as_text == "changed" ? 1 : 0);
    Matrix y = room_for(x);
    const std::int64_t began_ns = now_ns();
    layer_.at(0).run(x, y);
    const std::int64_t took_ns = now_ns() - began_ns;
    if (!was_called_) say_phase("first_call", took_ns);
    was_called_ = true;
    write_matrices(request.at("path").as_text, {{output_, y}});
    say("{\"type\":\"answered\",\"seconds\":" + std::to_string(static_cast<double>(took_ns) / 1e9) + "}");
  }

  void measure(const Json& request) {
    Matrix y = room_for(sets_.at(0));
    const auto& layer = layer_.at(0);
    std::size_t turn = 0;
    const auto next = [&]() -> const Matrix& { return sets_[turn++ % sets_.size()]; };
    const auto warm_up = static_cast<std::int64_t>(request.number_or("warmup", 10));
    for (std::int64_t i = 0; i < warm_up; ++i) layer.run(next(), y);
    const std::int64_t calls = calls_per_sample(request, layer, next(), y);
    const bool by_samples = request.number_or("samples", 0) > 0;
    const auto most = static_cast<std::size_t>(request.number_or("samples", 1e6));
    const double limit_ns = 1e9 * request.number_or("seconds", by_samples ? 1e9 : 1.0);
    std::vector<double> samples(most);
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    std::size_t taken = 0;
    std::int64_t began_ns = now_ns();
    std::int64_t end_ns = began_ns;
    DrawnCalls drawn(request);
    do {
      const double share =
          std::max(static_cast<double>(end_ns - began_ns) / limit_ns,
                   by_samples ? static_cast<double>(taken) / static_cast<double>(most) : 0.0);
      began_ns += drawn.make_those_due(share, layer, sets_, unseen_, input_, y, output_);
      const std::int64_t start_ns = now_ns();
      for (std::int64_t i = 0; i < calls; ++i) layer.run(next(), y);
      end_ns = now_ns();
      samples[taken++] = static_cast<double>(end_ns - start_ns) / static_cast<double>(calls);
    } while (taken < most && static_cast<double>(end_ns - began_ns) < limit_ns);
    drawn.make_those_due(1.0, layer, sets_, unseen_, input_, y, output_);
    getrusage(RUSAGE_SELF, &after);
    std::ostringstream message;
    message << "{\"type\":\"measured\",\"quantities\":[{\"name\":\"wall_ns\",\"unit\":\"ns\",\"count\":"
            << taken << ",\"method\":\"clock_gettime(CLOCK_MONOTONIC) around each sample\",\"resolution_ns\":"
            << resolution_ns() / static_cast<double>(calls) << ",\"floor\":{\"overhead_ns\":" << overhead_ns()
            << "}}],\"calls_per_sample\":" << calls << ",\"stopped_by\":\""
            << (taken == most ? "samples" : "seconds")
            << "\",\"elapsed_s\":" << static_cast<double>(end_ns - began_ns) / 1e9
            << ",\"counts\":{\"process_minor_faults\":" << after.ru_minflt - before.ru_minflt
            << ",\"process_involuntary_switches\":" << after.ru_nivcsw - before.ru_nivcsw
            << "},\"drawn\":{\"calls\":[" << drawn.reported() << "]},\"bytes\":" << taken * sizeof(double)
            << "}";
    say(message.str());
    write_all(samples.data(), taken * sizeof(double));
  }

  // Enough calls that the clock's own step does not matter.
  static std::int64_t calls_per_sample(const Json& request, const Layer& layer, const Matrix& x, Matrix& y) {
    if (const double asked = request.number_or("calls_per_sample", 0); asked > 0)
      return static_cast<std::int64_t>(asked);
    const std::int64_t began_ns = now_ns();
    layer.run(x, y);
    return std::max<std::int64_t>(1, 10'000 / std::max<std::int64_t>(1, now_ns() - began_ns));
  }

  Matrix room_for(const Matrix& x) const {
    const std::int64_t columns = layer_.at(0).transposed.columns;
    return {x.rows, columns, std::vector<float>(static_cast<std::size_t>(x.rows * columns))};
  }
  static double resolution_ns() {
    timespec step{};
    clock_getres(CLOCK_MONOTONIC, &step);
    return static_cast<double>(step.tv_nsec);
  }
  static double overhead_ns() {
    const std::int64_t began_ns = now_ns();
    for (int i = 0; i < 1000; ++i) now_ns();
    return static_cast<double>(now_ns() - began_ns) / 1000;
  }

  void say_phase(const std::string& name, std::int64_t ns) {
    say("{\"type\":\"phase\",\"name\":" + quoted(name) +
        ",\"seconds\":" + std::to_string(static_cast<double>(ns) / 1e9) + "}");
  }
  void say(const std::string& line) {
    const std::string whole = line + "\n";
    write_all(whole.data(), whole.size());
  }

  void write_all(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = write(write_fd_, bytes, size);
      if (written <= 0) _exit(1);  // the parent is gone
      bytes += written;
      size -= static_cast<std::size_t>(written);
    }
  }

  // False when the parent has closed its end, which is the sign to go.
  bool next_line(std::string& line) {
    std::size_t end = 0;
    while ((end = received_.find('\n')) == std::string::npos) {
      char chunk[4096];
      const ssize_t got = read(read_fd_, chunk, sizeof chunk);
      if (got <= 0) return false;
      received_.append(chunk, static_cast<std::size_t>(got));
    }
    line = received_.substr(0, end);
    received_.erase(0, end + 1);
    return true;
  }

  int read_fd_, write_fd_;
  std::string received_, phase_ = "start", input_, output_;
  std::vector<std::string> unseen_;
  std::vector<Matrix> sets_;
  std::vector<Layer> layer_;
  bool was_called_ = false;
};

int given(int argc, char** argv, std::string_view name) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == name) return std::atoi(argv[i + 1]);
  std::fprintf(stderr, "%s is missing; fairlap starts this program\n", std::string(name).c_str());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != given(argc, argv, "--parent")) return 1;
#endif
  Worker worker(given(argc, argv, "--read"), given(argc, argv, "--write"));
  try {
    worker.serve();
  } catch (const Unsupported& why) {
    worker.fail("unsupported", why.what());
  } catch (const std::bad_alloc& why) {
    worker.fail("out_of_memory", why.what());
  } catch (const std::exception& why) {
    worker.fail("exception", why.what());
  }
  return 0;
}
