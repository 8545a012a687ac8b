// GPT-2's way to write bytes as characters, which byte-level vocabularies use: printable bytes as
// the Latin-1 characters they are, the others as U+0100 and up in their order.
// Source: Radford et al. 2019, encoder.py.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hpo::text {

// The bytes that `token`, well-formed UTF-8, stands for; nullopt when a character of it stands for
// no byte.
std::optional<std::string> BytesOfToken(absl::string_view token);

// The inverse: `bytes` as a vocabulary writes them.
std::string TokenOfBytes(absl::string_view bytes);

}  // namespace hpo::text
