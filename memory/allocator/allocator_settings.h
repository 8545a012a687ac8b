// The caching allocator's options as torch writes them (PYTORCH_ALLOC_CONF):
// "expandable_segments:True,max_split_size_mb:128,garbage_collection_threshold:0.8".
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "memory/allocator/allocator_model.h"

namespace hpo::memory {

// Options that are not named keep their defaults; an empty text names none.
// roundup_power2_divisions is one number, for all sizes.
//   InvalidArgument  what is not KEY:VALUE, an unknown or repeated option, or a value that it does
//                    not take; names it
absl::StatusOr<AllocatorOptions> ParseAllocatorSettings(absl::string_view text);

// As ParseAllocatorSettings reads it. Always with expandable_segments, others where they are not
// the defaults; the limit has no place in it.
std::string FormatAllocatorSettings(const AllocatorOptions& options);

}  // namespace hpo::memory
