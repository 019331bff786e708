// Matrices of float32 in safetensors files.

#pragma once

#include <bit>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "json.hpp"

namespace worker {

static_assert(std::endian::native == std::endian::little, "samples and files are little-endian");

struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;
};

inline Matrix matrix_in(const std::string& path, const std::string& name) {
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

inline void write_matrices(const std::string& path, const std::map<std::string, Matrix>& matrices) {
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

}  // namespace worker
