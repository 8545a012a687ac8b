// Templates of scripts and manifests: text with placeholders. Pure.
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace hpo::cli {

// `text` with each placeholder @NAME@ (capital letters, digits and _) replaced by its value, which
// may have several lines: each of them is indented as the first one. A line that holds nothing but
// a placeholder whose value is empty is left out. Every placeholder must have a value.
std::string FillTemplate(absl::string_view text, const std::map<std::string, std::string>& values);

// The text as a string of JSON, which is one of YAML and of Python, too.
std::string QuotedText(const std::string& text);

}  // namespace hpo::cli
