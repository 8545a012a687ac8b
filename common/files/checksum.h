// A checksum against accidents (torn writes, mixed-up requests), not against people.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace hpo {

// FNV-1a with 64 bits (Fowler, Noll, Vo): equal on every machine and in every version.
constexpr uint64_t Fnv1a(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace hpo
