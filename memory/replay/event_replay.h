// Recorded events through the model of the caching allocator, for another GPU or other settings.
// Pure; safe from any thread. About 0.1 us an event.
#pragma once

#include <cstddef>
#include <optional>

#include "memory/allocator/allocator_model.h"
#include "memory/replay/recorded_events.h"

namespace hpo::memory {

struct EventReplay {
  AllocatorStats stats;  // until the last event that was replayed
  // The first request that ran out of memory. The replay ends there, unless the recorded program
  // ran out at the same request: what it did then is recorded.
  std::optional<size_t> out_of_memory_event;
  // The first request that ran out of memory when it was recorded and does not here. The replay
  // ends there: what the program does with the memory is not known.
  std::optional<size_t> unknown_from_event;
};

// `options` are valid.
EventReplay ReplayEvents(const RecordedDevice& device, const AllocatorOptions& options);

}  // namespace hpo::memory
