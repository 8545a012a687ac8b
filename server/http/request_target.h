// The target of an HTTP request (RFC 9112, 3.2; RFC 3986), decoded. Pure.
#pragma once

#include "absl/strings/string_view.h"
#include "server/http/http_message.h"

namespace hpo::server {

// Fills path, raw_path and query of `head`. False: not a path ("*", "http://...", no '/' first), an
// escape that is cut short, a NUL or another control character, or a segment "." or "..", escaped
// or not: no path leads out of where it begins.
bool ReadTarget(absl::string_view target, RequestHead& head);

// "a b/c" as a part of a path or a query: "a%20b%2Fc".
std::string PercentEncoded(absl::string_view text);

}  // namespace hpo::server
