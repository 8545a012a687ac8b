// Answers in fewer bytes (RFC 1952).
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hpo::server {

// Levels of zlib.
inline constexpr int kFastest = 1;
inline constexpr int kSmallest = 9;

std::string Gzip(absl::string_view text, int level);

// Whether an Accept-Encoding field has gzip, and not with the weight 0 (RFC 9110, 12.5.3).
bool AcceptsGzip(absl::string_view accept_encoding);

}  // namespace hpo::server
