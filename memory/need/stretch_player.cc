#include "memory/need/stretch_player.h"

#include "common/base/status.h"
#include "memory/allocator/allocator_settings.h"
#include "memory/need/trial_trace.h"

namespace hpo::memory {

std::vector<Stretch> CutIntoStretches(const AllocationTrace& trace) {
  std::vector<bool> is_freed(static_cast<size_t>(trace.num_blocks));
  for (const TraceEvent& event : trace.events) {
    if (!event.allocates) is_freed[static_cast<size_t>(event.block)] = true;
  }
  const Stretch all(trace.events);
  std::vector<Stretch> stretches;
  size_t begin = 0;
  const auto cut_before = [&](size_t event) {
    stretches.push_back(all.subspan(begin, event - begin));
    begin = event;
  };
  int64_t alive = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (stretches.empty() && is_freed[static_cast<size_t>(all[i].block)]) cut_before(i);
    if (stretches.empty()) continue;
    alive += all[i].allocates ? 1 : -1;
    if (alive == 0) cut_before(i + 1);
  }
  HPO_CHECK(begin == all.size());
  return stretches;
}

StretchPlayer::StretchPlayer(const DeviceProfile& device, const KernelTraits& traits,
                             int64_t num_blocks)
    : allocator_(ParseAllocatorSettings(device.allocator).value_or(AllocatorOptions())) {
  const AllocationTrace warm_up = TraceWarmUp(traits);
  blocks_.resize(static_cast<size_t>(warm_up.num_blocks));
  Play(warm_up.events);
  EmptyCache();
  blocks_.assign(static_cast<size_t>(num_blocks), {});
}

bool StretchPlayer::Play(Stretch events) {
  for (const TraceEvent& event : events) {
    AllocatorModel::Block& block = blocks_[static_cast<size_t>(event.block)];
    if (!event.allocates) {
      allocator_.Free(block);
      continue;
    }
    const auto allocated = allocator_.Allocate(Bytes{event.bytes}, event.stream);
    if (!allocated.has_value()) return false;
    block = *allocated;
  }
  return true;
}

}  // namespace hpo::memory
