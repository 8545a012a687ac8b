#include "cli/render/color.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hpo::cli {
namespace {

// Source: ECMA-48, 8.3.117 (select graphic rendition).
const char* SequenceOf(Color color) {
  switch (color) {
    case Color::kPlain:
      return "";
    case Color::kBold:
      return "\x1b[1m";
    case Color::kDim:
      return "\x1b[2m";
    case Color::kRed:
      return "\x1b[31m";
    case Color::kGreen:
      return "\x1b[32m";
    case Color::kYellow:
      return "\x1b[33m";
    case Color::kCyan:
      return "\x1b[36m";
  }
  return "";
}

}  // namespace

std::string Colored(absl::string_view text, Color color, bool enabled) {
  if (!enabled || color == Color::kPlain || text.empty()) return std::string(text);
  return absl::StrCat(SequenceOf(color), text, "\x1b[0m");
}

Color ColorOfState(absl::string_view state) {
  constexpr std::pair<absl::string_view, Color> kColors[] = {
      {"completed", Color::kGreen}, {"finished", Color::kGreen}, {"running", Color::kCyan},
      {"failed", Color::kRed},      {"unreadable", Color::kRed}, {"pruned", Color::kYellow},
      {"waiting", Color::kYellow},  {"paused", Color::kYellow},  {"stopping", Color::kYellow},
      {"stopped", Color::kYellow},  {"cancelled", Color::kDim},  {"queued", Color::kDim}};
  const std::string lower = absl::AsciiStrToLower(state);
  for (const auto& [word, color] : kColors) {
    if (absl::StartsWith(lower, word)) return color;
  }
  return Color::kPlain;
}

}  // namespace hpo::cli
