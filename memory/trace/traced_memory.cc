#include "memory/trace/traced_memory.h"

namespace hpo::memory {

// ---- TracedStorage -----------------------------------------------------------------------------

TracedStorage::TracedStorage(const TracedStorage& other)
    : memory_(other.memory_), block_(other.block_), is_view_(other.is_view_) {
  if (memory_ != nullptr) ++memory_->blocks_[static_cast<size_t>(block_)].holders;
}

TracedStorage::TracedStorage(TracedStorage&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      block_(other.block_),
      is_view_(other.is_view_) {}

TracedStorage& TracedStorage::operator=(TracedStorage other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(block_, other.block_);
  std::swap(is_view_, other.is_view_);
  return *this;
}

TracedStorage::~TracedStorage() {
  if (memory_ != nullptr) memory_->Release(block_);
}

int64_t TracedStorage::bytes() const {
  return memory_ == nullptr ? 0 : memory_->blocks_[static_cast<size_t>(block_)].bytes;
}

TracedStorage TracedStorage::AsView() const {
  TracedStorage view = *this;
  view.is_view_ = true;
  return view;
}

bool TracedStorage::IsUnique() const {
  return memory_ != nullptr && memory_->blocks_[static_cast<size_t>(block_)].holders == 1;
}

// ---- TracedMemory ------------------------------------------------------------------------------

TracedStorage TracedMemory::Allocate(int64_t bytes, MemoryClass memory_class) {
  const auto block = static_cast<int32_t>(blocks_.size());
  blocks_.push_back({.bytes = bytes, .holders = 1, .memory_class = memory_class});
  trace_.num_blocks = block + 1;
  if (bytes > 0) {
    trace_.events.push_back({.bytes = bytes, .block = block, .memory_class = memory_class});
  }
  return TracedStorage(this, block);
}

void TracedMemory::Release(int32_t block) {
  BlockCount& count = blocks_[static_cast<size_t>(block)];
  if (--count.holders > 0 || count.bytes == 0 || ended_) return;
  trace_.events.push_back({.bytes = count.bytes,
                           .block = block,
                           .memory_class = count.memory_class,
                           .allocates = false});
}

void TracedMemory::Touch(int64_t bytes, MemoryClass memory_class) { Allocate(bytes, memory_class); }

TracedTensor TracedMemory::NewTensor(int64_t elements, int64_t element_size) {
  return {.storage = Allocate(elements * element_size),
          .elements = elements,
          .element_size = element_size};
}

void TracedMemory::EnterPhase(std::string phase) {
  trace_.phases.push_back({.first_event = trace_.events.size(), .name = std::move(phase)});
}

}  // namespace hpo::memory
