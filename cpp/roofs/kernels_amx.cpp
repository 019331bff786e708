#include <immintrin.h>

#include <array>
#include <cstdint>

#include "roofs/kernel_sets.hpp"
#include "roofs/x86_features.hpp"

namespace fairlap::roofs {
namespace {

constexpr int kTiles = 8;
constexpr int kSums = 6;  // the other two are their operands; four hide the 52 cycles of a product
constexpr int kRows = 16;
constexpr int kRowBytes = 64;

// Operand of LDTILECFG (Intel SDM vol. 1, 18.2).
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

struct alignas(64) Tile {
  std::uint16_t values[kRows * kRowBytes / 2];
};

// The intrinsics of GCC 12 do not say that they read all of it.
void finish_writing(const void* object) { asm volatile("" ::"r"(object) : "memory"); }

// Of bytes, 257 is two ones. Sums of bfloat16 stay 0, those of bytes wrap around.
void load_tiles(std::uint16_t left, std::uint16_t right) {
  TileConfig config;
  for (int tile = 0; tile < kTiles; ++tile) {
    config.row_bytes[tile] = kRowBytes;
    config.rows[tile] = kRows;
  }
  finish_writing(&config);
  _tile_loadconfig(&config);
  Tile operand;
  for (auto& value : operand.values) value = left;
  finish_writing(&operand);
  _tile_loadd(6, operand.values, kRowBytes);
  for (auto& value : operand.values) value = right;
  finish_writing(&operand);
  _tile_loadd(7, operand.values, kRowBytes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
}

// Each of 16 x 16 floats takes the products of 32 pairs.
void run_bf16(std::uint64_t rounds) {
  load_tiles(0x3f80, 0);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_release();
}

// Each of 16 x 16 integers takes the products of 64 pairs.
void run_int8(std::uint64_t rounds) {
  load_tiles(257, 257);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    _tile_dpbusd(0, 6, 7);
    _tile_dpbusd(1, 6, 7);
    _tile_dpbusd(2, 6, 7);
    _tile_dpbusd(3, 6, 7);
    _tile_dpbusd(4, 6, 7);
    _tile_dpbusd(5, 6, 7);
  }
  _tile_release();
}

constexpr double operations_of(int element_bytes) {
  return 2.0 * kSums * kRows * (kRowBytes / 4.0) * (static_cast<double>(kRowBytes) / element_bytes);
}

constexpr std::array kArithmetic{
    ArithmeticKernel{.number_type = "bf16",
                     .instructions = "amx_bf16",
                     .operations_per_round = operations_of(2),
                     .available = has_amx_bf16,
                     .run = run_bf16},
    ArithmeticKernel{.number_type = "int8",
                     .instructions = "amx_int8",
                     .operations_per_round = operations_of(1),
                     .available = has_amx_int8,
                     .run = run_int8},
};

}  // namespace

constinit const KernelSet kAmxKernels{kArithmetic, {}};

}  // namespace fairlap::roofs
