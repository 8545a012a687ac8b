#include "worker/trainer/memory/counting_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/synchronization/mutex.h"

namespace hpo::trainer {
namespace {

// Higher than any of torch's own.
constexpr uint8_t kPriority = 200;

// Sizes by address. A deleter gets nothing but the address, and raw_deallocate may be handed one
// from before the installation, so neither a header nor a bigger context would do.
class SizeTable {
 public:
  void Insert(const void* address, Bytes size) {
    Shard& shard = ShardOf(address);
    const absl::MutexLock lock(&shard.mutex);
    shard.sizes[address] = size;
  }

  // 0 for an address that was not allocated here.
  Bytes Erase(const void* address) {
    Shard& shard = ShardOf(address);
    const absl::MutexLock lock(&shard.mutex);
    const auto found = shard.sizes.find(address);
    if (found == shard.sizes.end()) return Bytes{};
    const Bytes size = found->second;
    shard.sizes.erase(found);
    return size;
  }

 private:
  struct Shard {
    absl::Mutex mutex;
    absl::flat_hash_map<const void*, Bytes> sizes ABSL_GUARDED_BY(mutex);
  };

  Shard& ShardOf(const void* address) {
    return shards_[absl::Hash<const void*>{}(address) % shards_.size()];
  }

  std::array<Shard, 16> shards_;
};

SizeTable& Sizes() {
  static auto* const sizes = new SizeTable;  // outlives every static tensor
  return *sizes;
}

}  // namespace

class CountingAllocator::Adapter final : public c10::Allocator {
 public:
  explicit Adapter(CountingAllocator* counts) { counts_ = counts; }

  c10::DataPtr allocate(size_t size) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (size == 0) return {nullptr, nullptr, &Delete, cpu};
    const Bytes counted = RoundUp(Bytes{static_cast<int64_t>(size)}, kGranularity);
    counts_->Reserve(counted);
    void* data = nullptr;
    try {
      data = c10::alloc_cpu(size);
    } catch (...) {
      counts_->Release(counted);
      throw;
    }
    Sizes().Insert(data, counted);
    if (AllocationWatcher* const watcher = counts_->watcher()) watcher->Allocated(data, counted);
    return {data, data, &Delete, cpu};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &Delete; }

  void copy_data(void* to, const void* from, std::size_t size) const override {
    default_copy_data(to, from, size);
  }

 private:
  static void Delete(void* data) {
    if (data == nullptr) return;
    const Bytes size = Sizes().Erase(data);
    counts_->Release(size);
    // Told before the address can be given out again.
    AllocationWatcher* const watcher = counts_->watcher();
    if (watcher != nullptr && size > Bytes{}) watcher->Freed(data, size);
    c10::free_cpu(data);
  }

  static inline CountingAllocator* counts_ = nullptr;
};

CountingAllocator& CountingAllocator::Install() {
  static CountingAllocator* const instance = [] {
    auto* const counts = new CountingAllocator;
    c10::SetCPUAllocator(new Adapter(counts), kPriority);
    return counts;
  }();
  return *instance;
}

void CountingAllocator::ResetPeak() { peak_.store(live_.load()); }

void CountingAllocator::SetLimit(Bytes limit) { limit_.store(limit.count); }

void CountingAllocator::Reserve(Bytes size) {
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  int64_t before = live_.load(std::memory_order_relaxed);
  if (watcher() != nullptr && !watcher()->Admit(size)) Refuse(size, Bytes{before}, Bytes{limit});
  do {
    if (limit > 0 && before + size.count > limit) Refuse(size, Bytes{before}, Bytes{limit});
  } while (!live_.compare_exchange_weak(before, before + size.count));
  const int64_t live = before + size.count;
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (live > peak && !peak_.compare_exchange_weak(peak, live)) {
  }
}

void CountingAllocator::Refuse(Bytes size, Bytes live, Bytes limit) {
  refused_live_.store(live.count);
  refused_requested_.store(size.count);
  const Bytes free{limit > live ? limit.count - live.count : 0};
  TORCH_CHECK_WITH(OutOfMemoryError, false, "CPU out of memory. Tried to allocate ",
                   FormatBytes(size), ". The memory budget has a total capacity of ",
                   FormatBytes(limit), " of which ", FormatBytes(free), " is free. Tensors have ",
                   FormatBytes(live), " in use.");
}

void CountingAllocator::Release(Bytes size) { live_.fetch_sub(size.count); }

std::optional<RefusedAllocation> CountingAllocator::TakeRefused() {
  const int64_t requested = refused_requested_.exchange(0);
  if (requested == 0) return std::nullopt;
  const Bytes live{refused_live_.load()};
  return RefusedAllocation{Bytes{requested}, live, limit(), std::max(Bytes{}, limit() - live)};
}

}  // namespace hpo::trainer
