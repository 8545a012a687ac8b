#include "memory/replay/event_replay.h"

#include <cstdint>
#include <vector>

namespace hpo::memory {
namespace {

using Kind = RecordedEvent::Kind;

class Player {
 public:
  Player(const RecordedDevice& device, const AllocatorOptions& options) : allocator_(options) {
    blocks_.reserve(device.num_allocations);
    for (size_t pool = 0; pool < device.private_pools.size(); ++pool) {
      if (device.private_pools[pool]) allocator_.MakePrivate(static_cast<uint16_t>(pool));
    }
  }

  // Returns whether the next event can be replayed.
  bool Play(size_t number, const RecordedEvent& event) {
    switch (event.kind) {
      case Kind::kAllocate:
        return Allocate(number, event);
      case Kind::kFree:
        allocator_.Free(blocks_[static_cast<size_t>(event.value)]);
        return true;
      case Kind::kOutOfMemory:
        return RunOut(number, event);
      case Kind::kEmptyCache:
        allocator_.EmptyCache();
        return true;
      case Kind::kEmptyPrivate:
        allocator_.EmptyCacheOf(event.pool);
        return true;
    }
    return false;
  }

  EventReplay Result() {
    result_.stats = allocator_.stats();
    return result_;
  }

 private:
  bool Allocate(size_t number, const RecordedEvent& event) {
    const auto block = allocator_.Allocate(Bytes{event.value}, event.pool);
    if (!block.has_value()) {
      if (!result_.out_of_memory_event.has_value()) result_.out_of_memory_event = number;
      return false;
    }
    blocks_.push_back(*block);
    return true;
  }

  bool RunOut(size_t number, const RecordedEvent& event) {
    if (allocator_.Allocate(Bytes{event.value}, event.pool).has_value()) {
      result_.unknown_from_event = number;
      return false;
    }
    if (!result_.out_of_memory_event.has_value()) result_.out_of_memory_event = number;
    return true;
  }

  AllocatorModel allocator_;
  std::vector<AllocatorModel::Block> blocks_;  // by allocation
  EventReplay result_;
};

}  // namespace

EventReplay ReplayEvents(const RecordedDevice& device, const AllocatorOptions& options) {
  Player player(device, options);
  for (size_t i = 0; i < device.events.size(); ++i) {
    if (!player.Play(i, device.events[i])) break;
  }
  return player.Result();
}

}  // namespace hpo::memory
