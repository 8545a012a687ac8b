// Words as /bin/sh reads them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hpo {

// `text` as one word of /bin/sh, in quotes where it has to be.
inline std::string ShellWord(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-_./:=,+@%", c);
  });
  return plain ? text : absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// The text of a command that is one text for /bin/sh; nullopt: it has other words.
inline std::optional<std::string> TextOf(const std::vector<std::string>& command) {
  const bool is_text = command.size() == 3 && command[0] == "/bin/sh" && command[1] == "-c";
  return is_text ? std::optional(command[2]) : std::nullopt;
}

}  // namespace hpo
