// The least memory of a GPU with which a recorded program runs.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/allocator/allocator_model.h"
#include "memory/replay/recorded_events.h"

namespace hpo::memory {

// Bytes that the program must be able to hold of the GPU so that no request runs out of memory,
// where the allocator frees its cache when it must: to 2 MiB, the unit of its segments. Found by
// replays of totals between the peaks of allocated and of reserved memory. Where fragmentation lets
// a smaller total fit and a larger one not, the result is above the largest total that was tried
// and does not fit. `options.card` is ignored: each replayed GPU has what is tried, and `beyond`
// more, which others hold. The program allows itself `fraction` of that total.
// nullopt: a request ran out of memory when it was recorded, or does so on any GPU.
std::optional<int64_t> LeastMemory(const RecordedDevice& device, const AllocatorOptions& options,
                                   double fraction, int64_t beyond);

}  // namespace hpo::memory
