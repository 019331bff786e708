// A contestant without Python: it speaks the worker protocol and multiplies by one matrix, which is all that
// the model "example_model" asks. Written to be read; it understands just as much JSON as the protocol needs.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// The text of one field of a flat JSON object; strings without their quotation marks.
std::string field(const std::string& json, const std::string& name) {
  const std::size_t key = json.find("\"" + name + "\":");
  if (key == std::string::npos) return "";
  std::size_t at = json.find(':', key) + 1;
  while (json[at] == ' ') ++at;
  if (json[at] == '"') return json.substr(at + 1, json.find('"', at + 1) - at - 1);
  std::size_t end = at;
  int depth = 0;
  while (end < json.size() && (depth > 0 || (json[end] != ',' && json[end] != '}'))) {
    if (json[end] == '[' || json[end] == '{') ++depth;
    if (json[end] == ']' || json[end] == '}') --depth;
    ++end;
  }
  return json.substr(at, end - at);
}

struct Array {
  std::vector<std::size_t> shape;
  std::vector<float> values;
};

// One float32 array of a safetensors file.
Array read_array(const std::string& path, const std::string& name) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t header_size = 0;
  file.read(reinterpret_cast<char*>(&header_size), sizeof header_size);
  std::string header(header_size, ' ');
  file.read(header.data(), static_cast<std::streamsize>(header_size));
  const std::size_t entry = header.find("\"" + name + "\":");
  if (!file || entry == std::string::npos) throw std::runtime_error(path + " has no array " + name);
  const std::string told = header.substr(header.find('{', entry));
  std::istringstream shape(field(told, "shape").substr(1));
  std::istringstream offsets(field(told, "data_offsets").substr(1));
  Array array;
  char comma = 0;
  for (std::size_t size = 0; shape >> size; shape >> comma) array.shape.push_back(size);
  std::size_t begin = 0;
  std::size_t end = 0;
  offsets >> begin >> comma >> end;
  array.values.resize((end - begin) / sizeof(float));
  file.seekg(static_cast<std::streamoff>(8 + header_size + begin));
  file.read(reinterpret_cast<char*>(array.values.data()), static_cast<std::streamsize>(end - begin));
  return array;
}

void write_product(const std::string& path, const std::vector<float>& values, std::size_t rows) {
  const std::size_t bytes = values.size() * sizeof(float);
  const std::string header = R"({"product":{"dtype":"F32","shape":[)" + std::to_string(rows) + "," +
                             std::to_string(values.size() / rows) + R"(],"data_offsets":[0,)" +
                             std::to_string(bytes) + "]}}";
  const std::uint64_t size = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file << header;
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(bytes));
}

std::vector<float> product(const Array& row, const Array& matrix) {
  const std::size_t outputs = matrix.shape[0];
  const std::size_t inputs = matrix.shape[1];
  std::vector<float> result(row.shape[0] * outputs);
  for (std::size_t item = 0; item < row.shape[0]; ++item) {
    for (std::size_t out = 0; out < outputs; ++out) {
      float sum = 0;
      for (std::size_t in = 0; in < inputs; ++in) {
        sum += row.values[item * inputs + in] * matrix.values[out * inputs + in];
      }
      result[item * outputs + out] = sum;
    }
  }
  return result;
}

double now_ns() {
  using namespace std::chrono;
  return duration<double, std::nano>(steady_clock::now().time_since_epoch()).count();
}

class Worker {
 public:
  Worker(int read_end, int write_end)
      : requests_(fdopen(read_end, "rb")), answers_(fdopen(write_end, "wb")) {}

  int run() {
    say(R"({"say":"hello","protocol":1,"language":"C++","pid":)" + std::to_string(getpid()) + "}");
    char* line = nullptr;
    std::size_t room = 0;
    while (getline(&line, &room, requests_) > 0) {
      const std::string request(line);
      const std::string what = field(request, "say");
      if (what == "prepare") prepare(request);
      if (what == "answer") answer(request);
      if (what == "measure") measure(request);
      if (what == "quit") break;
    }
    std::free(line);
    say(R"({"say":"bye","memory_bytes":{}})");
    return 0;
  }

 private:
  void say(const std::string& message) {
    std::fputs((message + "\n").c_str(), answers_);
    std::fflush(answers_);
  }

  void prepare(const std::string& request) {
    const double began_ns = now_ns();
    matrix_ = read_array(field(request, "weights_file"), "matrix");
    row_ = read_array(field(request, "inputs_file"), "row");
    say(R"({"say":"phase","name":"build","seconds":)" + std::to_string((now_ns() - began_ns) / 1e9) + "}");
    say(R"({"say":"prepared","version":"1.0","in_force":{"threads":"1","precision":"fp32"},"weights_hash":""})");
  }

  void answer(const std::string& request) {
    const Array row = read_array(field(request, "inputs_file"), "row");
    const double began_ns = now_ns();
    const std::vector<float> result = product(row, matrix_);
    const double seconds = (now_ns() - began_ns) / 1e9;
    write_product(field(request, "write_to"), result, row.shape[0]);
    say(R"({"say":"answered","seconds":)" + std::to_string(seconds) + "}");
  }

  void measure(const std::string& request) {
    const double until_ns = now_ns() + std::stod(field(request, "seconds")) * 1e9;
    constexpr int calls_per_sample = 100;
    std::vector<double> samples;
    float kept = 0;  // printed below, so that the compiler cannot leave the work out
    while (now_ns() < until_ns) {
      const double began_ns = now_ns();
      for (int call = 0; call < calls_per_sample; ++call) kept += product(row_, matrix_)[0];
      samples.push_back((now_ns() - began_ns) / calls_per_sample);
    }
    std::cerr << "kept " << kept << "\n";
    say(R"({"say":"laps","quantity":"wall_ns","method":"std::chrono::steady_clock","resolution_ns":1.0,)"
        R"("calls_per_sample":100,"stopped_by":"seconds","bytes":)" +
        std::to_string(samples.size() * sizeof(double)) + "}");
    std::fwrite(samples.data(), sizeof(double), samples.size(), answers_);
    std::fflush(answers_);
  }

  std::FILE* requests_;
  std::FILE* answers_;
  Array matrix_;
  Array row_;
};

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int at = 1; at + 1 < argc; at += 2) options[argv[at]] = argv[at + 1];
  try {
    return Worker(std::stoi(options.at("--read")), std::stoi(options.at("--write"))).run();
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
