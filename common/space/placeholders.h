// Placeholders of a command: "python train.py --lr {train.lr}". Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hpo {

constexpr char kAllParameters[] = "args";
constexpr char kAllOverrides[] = "overrides";
constexpr char kFlagPrefix[] = "flag:";

// What a placeholder may name besides the trial's parameters, {args} and {overrides}.
const std::vector<std::string>& TrialValueNames();

// Length of the placeholder with which `text` begins, its braces included; 0: there is none. A
// placeholder is a name in braces: a letter, then letters, digits, "_", "-" and ".". "flag:" may
// stand before it, and ":json" or ":yaml" behind "config".
size_t PlaceholderLength(absl::string_view text);

struct CommandPiece {
  std::string text;  // of a placeholder: what stands between its braces
  bool is_placeholder = false;
  bool operator==(const CommandPiece&) const = default;
};

// A command cut at its placeholders, which stand between two plain pieces. Braces around anything
// else are the shell's, as are those after a "$"; "{{name}}" stands for the text "{name}".
std::vector<CommandPiece> CutAtPlaceholders(absl::string_view text);

// `text` so that CutAtPlaceholders gives it back as one plain piece.
std::string WithoutPlaceholders(absl::string_view text);

// Whether each placeholder of `text`, a command or a word of one, stands for something that trials
// have, of the parameters `names`.
//   InvalidArgument  one does not: names it, the parameters and the nearest name, as "expected ...,
//                    got ..."
absl::Status CheckPlaceholders(absl::string_view text, const std::vector<std::string>& names);

}  // namespace hpo
