#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "feed/lending.hpp"
#include "tests/check.hpp"
#include "tests/refuses.hpp"

using namespace fairlap::feed;
using fairlap::test::refuses;

namespace {

Ticket next_of(const std::shared_ptr<Lending>& lending, std::size_t samples) {
  const Slots::Begun begun = lending->slots().begin_filling();
  lending->set_samples(begun.slot, samples);
  lending->slots().publish(begun.slot, 0);
  return lending->slots().hand_out(std::chrono::nanoseconds(0), lending).ticket;
}

std::shared_ptr<Lending> of_type(ElementType type, std::vector<std::int64_t> sample_shape = {2, 3}) {
  return std::make_shared<Lending>(2, 4, SampleArray{type, std::move(sample_shape), 100});
}

void check_tensor(const dlpack::Tensor& tensor, const Lending& lending) {
  CHECK_EQUAL(tensor.dimensions, 3);
  const std::vector<std::int64_t> shape(tensor.shape, tensor.shape + 3);
  const std::vector<std::int64_t> strides(tensor.strides, tensor.strides + 3);
  CHECK((shape == std::vector<std::int64_t>{4, 2, 3}));
  CHECK((strides == std::vector<std::int64_t>{6, 3, 1}));
  CHECK_EQUAL(tensor.device.type, 1);
  CHECK_EQUAL(tensor.device.id, 0);
  CHECK_EQUAL(tensor.byte_offset, 0U);
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(tensor.data) % 256, 0U);
  CHECK_EQUAL(lending.bytes_per_sample(), 24U);
}

TEST("both generations of DLPack describe the same batch") {
  const auto lending = of_type(ElementType::float32);
  const Ticket ticket = next_of(lending, 4);
  dlpack::Managed* const first = lending->lend(ticket);
  dlpack::ManagedVersioned* const second = lending->lend_versioned(ticket);
  check_tensor(first->tensor, *lending);
  check_tensor(second->tensor, *lending);
  CHECK(first->tensor.data == second->tensor.data);
  CHECK_EQUAL(second->version.major, 1U);
  CHECK_EQUAL(second->flags, 0U);
  first->deleter(first);
  second->deleter(second);
  lending->give_back(ticket);
}

TEST("every element type has the code and width that DLPack gives it") {
  struct Known {
    ElementType type;
    int code;
    int bits;
  };
  for (const Known& known :
       {Known{ElementType::boolean, 6, 8}, Known{ElementType::uint8, 1, 8}, Known{ElementType::int8, 0, 8},
        Known{ElementType::int16, 0, 16}, Known{ElementType::int32, 0, 32}, Known{ElementType::int64, 0, 64},
        Known{ElementType::float16, 2, 16}, Known{ElementType::bfloat16, 4, 16},
        Known{ElementType::float32, 2, 32}, Known{ElementType::float64, 2, 64}}) {
    const auto lending = of_type(known.type);
    const Ticket ticket = next_of(lending, 4);
    dlpack::Managed* const managed = lending->lend(ticket);
    CHECK_EQUAL(int{managed->tensor.type.code}, known.code);
    CHECK_EQUAL(int{managed->tensor.type.bits}, known.bits);
    CHECK_EQUAL(int{managed->tensor.type.lanes}, 1);
    managed->deleter(managed);
    lending->give_back(ticket);
  }
}

TEST("a slot is empty again only when the batch and every tensor made from it are gone") {
  const auto lending = of_type(ElementType::float32);
  const Ticket ticket = next_of(lending, 4);
  dlpack::Managed* const first = lending->lend(ticket);
  dlpack::ManagedVersioned* const second = lending->lend_versioned(ticket);
  lending->give_back(ticket);
  first->deleter(first);
  CHECK_EQUAL(lending->slots().count_in(SlotState::handed_out), 1U);
  second->deleter(second);
  CHECK_EQUAL(lending->slots().count_in(SlotState::handed_out), 0U);
  CHECK(refuses<StaleSlot>([&] { lending->lend(ticket); }));
  CHECK(refuses<StaleSlot>([&] { lending->lend_versioned(ticket); }));
}

TEST("the shape of a smaller batch is smaller, that of the next one full") {
  const auto lending = of_type(ElementType::uint8, {});
  const Ticket small = next_of(lending, 3);
  CHECK_EQUAL(lending->shape(small.slot)[0], 3);
  CHECK_EQUAL(lending->shape(small.slot).size(), 1U);
  lending->give_back(small);
  const Ticket full = next_of(lending, 4);
  CHECK_EQUAL(lending->shape(full.slot)[0], 4);
  lending->give_back(full);
}

TEST("a tensor outlives everything else, and the memory goes with it") {
  auto lending = of_type(ElementType::float32);
  const std::weak_ptr<Lending> watched = lending;
  const Ticket ticket = next_of(lending, 4);
  dlpack::Managed* const tensor = lending->lend(ticket);
  lending->give_back(ticket);
  lending.reset();
  CHECK(!watched.expired());
  static_cast<float*>(tensor->tensor.data)[5] = 1.0F;
  tensor->deleter(tensor);
  CHECK(watched.expired());
}

TEST("tensors of one batch may be made and dropped in many threads at once") {
  const auto lending = of_type(ElementType::float32);
  const Ticket ticket = next_of(lending, 4);
  std::vector<std::thread> holders;
  for (int thread = 0; thread < 4; ++thread) {
    holders.emplace_back([&] {
      for (int turn = 0; turn < 2000; ++turn) {
        dlpack::Managed* const tensor = lending->lend(ticket);
        tensor->deleter(tensor);
      }
    });
  }
  for (std::thread& holder : holders) holder.join();
  CHECK(lending->is_current(ticket));
  lending->give_back(ticket);
  CHECK_EQUAL(lending->slots().count_in(SlotState::empty), 2U);
}

}  // namespace

TEST_MAIN()
