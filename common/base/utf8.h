// Whether bytes from outside are UTF-8, before they reach JSON and Protobuf, which hold nothing
// else.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace hpo {

// How many leading bytes of `text` are whole UTF-8 characters: text.size() when all of it is UTF-8.
// Overlong forms, surrogates and what lies above U+10FFFF are not. Source: RFC 3629, section 4.
size_t ValidUtf8Prefix(absl::string_view text);

}  // namespace hpo
