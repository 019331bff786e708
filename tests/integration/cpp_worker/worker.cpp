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
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

static_assert(std::endian::native == std::endian::little, "samples and files are little-endian");

struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// --- JSON, as much of it as the protocol and a safetensors header use -------------------------------------

struct Json {
  enum Kind { null, number, text, list, object } kind = null;
  double as_number = 0;
  std::string as_text{};
  std::vector<Json> items{};
  std::map<std::string, Json> fields{};

  const Json& at(const std::string& name) const {
    const auto found = fields.find(name);
    if (found == fields.end()) throw std::runtime_error("a message lacks " + name);
    return found->second;
  }
  std::string text_or(const std::string& name, const std::string& otherwise) const {
    const auto found = fields.find(name);
    return found == fields.end() ? otherwise : found->second.as_text;
  }
  double number_or(const std::string& name, double otherwise) const {
    const auto found = fields.find(name);
    return found == fields.end() || found->second.kind != number ? otherwise : found->second.as_number;
  }
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view source) : left_(source) {}

  Json value() {
    const char first = peek();
    if (first == '{') return object();
    if (first == '[') return list();
    if (first == '"') return {.kind = Json::text, .as_text = text()};
    for (const std::string_view word : {"null", "true", "false"}) {  // this worker needs none of them
      if (!left_.starts_with(word)) continue;
      left_.remove_prefix(word.size());
      return {};
    }
    return number();
  }

 private:
  char peek() {
    const auto start = left_.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos) throw std::runtime_error("a message ends too early");
    left_.remove_prefix(start);
    return left_.front();
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) throw std::runtime_error(std::string("a message lacks a ") + wanted);
  }
  Json number() {
    std::size_t used = 0;
    Json result{.kind = Json::number, .as_number = std::stod(std::string(left_.substr(0, 40)), &used)};
    left_.remove_prefix(used);
    return result;
  }
  std::string text() {
    expect('"');
    std::string result;
    for (;;) {
      if (left_.empty()) throw std::runtime_error("a text in a message does not end");
      char letter = left_.front();
      left_.remove_prefix(1);
      if (letter == '"') return result;
      if (letter == '\\' && !left_.empty()) {
        letter = left_.front();
        left_.remove_prefix(1);
        if (letter != '"' && letter != '\\' && letter != '/')
          throw std::runtime_error("this worker knows only the escapes that names of files need");
      }
      result += letter;
    }
  }
  Json list() {
    Json result{.kind = Json::list};
    expect('[');
    while (!take(']')) {
      result.items.push_back(value());
      take(',');
    }
    return result;
  }
  Json object() {
    Json result{.kind = Json::object};
    expect('{');
    while (!take('}')) {
      peek();
      const std::string name = text();
      expect(':');
      result.fields[name] = value();
      take(',');
    }
    return result;
  }

  std::string_view left_;
};

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
  }
  return result + '"';
}

// --- safetensors ------------------------------------------------------------------------------------------

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;
};

Matrix matrix_in(const std::string& path, const std::string& name) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file || length > 100'000'000) throw std::runtime_error(path + " is not a safetensors file");
  std::string header(length, '\0');
  file.read(header.data(), static_cast<std::streamsize>(length));
  const Json entry = JsonReader(header).value().at(name);
  const auto& shape = entry.at("shape").items;
  if (entry.at("dtype").as_text != "F32" || shape.size() != 2)
    throw Unsupported(name + " is not a matrix of float32");
  Matrix matrix{
      static_cast<std::int64_t>(shape[0].as_number), static_cast<std::int64_t>(shape[1].as_number), {}};
  matrix.values.resize(static_cast<std::size_t>(matrix.rows * matrix.columns));
  file.seekg(static_cast<std::streamoff>(8 + length) +
             static_cast<std::streamoff>(entry.at("data_offsets").items.at(0).as_number));
  file.read(reinterpret_cast<char*>(matrix.values.data()),
            static_cast<std::streamsize>(matrix.values.size() * sizeof(float)));
  if (!file) throw std::runtime_error(path + " ends too early");
  return matrix;
}

void write_matrices(const std::string& path, const std::map<std::string, Matrix>& matrices) {
  std::ostringstream text;
  std::size_t end = 0;
  for (const auto& [name, matrix] : matrices) {
    const std::size_t begin = std::exchange(end, end + matrix.values.size() * sizeof(float));
    text << (begin == 0 ? "{" : ",") << quoted(name) << ":{\"dtype\":\"F32\",\"shape\":[" << matrix.rows
         << "," << matrix.columns << "],\"data_offsets\":[" << begin << "," << end << "]}";
  }
  std::string header = end == 0 ? "{}" : text.str() + "}";
  header.append((64 - (8 + header.size()) % 64) % 64, ' ');
  const std::uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header;
  for (const auto& [name, matrix] : matrices)
    file.write(reinterpret_cast<const char*>(matrix.values.data()),
               static_cast<std::streamsize>(matrix.values.size() * sizeof(float)));
  if (!file.flush()) throw std::runtime_error(path + " cannot be written");
}

// --- SHA-256 (FIPS 180-4), for the hash of what was loaded -------------------------------------------------

class Sha256 {
 public:
  void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    for (std::size_t i = 0; i < size; ++i) {
      block_[filled_++] = bytes[i];
      if (filled_ == block_.size()) digest_block();
    }
    bits_ += 8 * size;
  }
  std::string hex() {
    const std::uint64_t bits = bits_;
    const std::uint8_t one = 0x80, zero = 0;
    add(&one, 1);
    while (filled_ != 56) add(&zero, 1);
    for (int shift = 56; shift >= 0; shift -= 8) {
      const auto byte = static_cast<std::uint8_t>(bits >> shift);
      add(&byte, 1);
    }
    std::string result;
    for (const std::uint32_t word : state_) {
      char digits[9];
      std::snprintf(digits, sizeof digits, "%08x", word);
      result += digits;
    }
    return result;
  }

 private:
  void digest_block() {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 16; ++i)
      w[i] = std::uint32_t{block_[4 * i]} << 24 | std::uint32_t{block_[4 * i + 1]} << 16 |
             std::uint32_t{block_[4 * i + 2]} << 8 | block_[4 * i + 3];
    for (std::size_t i = 16; i < 64; ++i) {
      const auto a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      // The constants are the fractions of the cube roots of the first 64 primes.
      const auto first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) +
                         kRoots[i] + w[i];
      const auto second =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state_[i] += added[i];
    filled_ = 0;
  }
  static constexpr std::array<std::uint32_t, 64> kRoots{
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t bits_ = 0;
};

std::string hash_of(const std::string& name, const Matrix& matrix) {
  Sha256 sha;
  std::ostringstream line;
  line << name << " <f4 [" << matrix.rows << ", " << matrix.columns << "]\n";
  const std::string text = line.str();
  sha.add(text.data(), text.size());
  sha.add(matrix.values.data(), matrix.values.size() * sizeof(float));
  return sha.hex();
}

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
