#include "common/command_line/wrapped_line.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/utf8.h"

namespace hpo {
namespace {

constexpr absl::string_view kLabelGap = "  ";

bool Within(uint32_t code, uint32_t low, uint32_t high) { return low <= code && code <= high; }

// Source: Unicode Standard Annex 11 (East Asian Width), the large blocks only.
int WidthOf(uint32_t code) {
  if (Within(code, 0x300, 0x36F) || Within(code, 0x200B, 0x200F) || Within(code, 0xFE00, 0xFE0F)) {
    return 0;
  }
  const bool wide = Within(code, 0x1100, 0x115F) || Within(code, 0x2E80, 0xA4CF) ||
                    Within(code, 0xAC00, 0xD7A3) || Within(code, 0xF900, 0xFAFF) ||
                    Within(code, 0xFE30, 0xFE6F) || Within(code, 0xFF00, 0xFF60) ||
                    Within(code, 0x1F300, 0x1FAFF) || Within(code, 0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

// Length of the escape sequence or the carriage return that `text` begins with; 0: of neither.
size_t InvisibleLength(absl::string_view text) {
  if (absl::StartsWith(text, "\r")) return 1;
  if (!absl::StartsWith(text, "\x1b[")) return 0;
  size_t end = 2;
  while (end < text.size() && Within(static_cast<uint8_t>(text[end]), ' ', '?')) ++end;
  return std::min(end + 1, text.size());
}

bool BeginsCommand(absl::string_view text) {
  for (const char* begin : {"hpo ", "hpo-server ", "hpo-worker ", "HPO_SERVER="}) {
    if (absl::StartsWith(text, begin)) return true;
  }
  return false;
}

// Length of what stays whole at the beginning of `text`, which is not empty and no blank.
size_t WholeLength(absl::string_view text) {
  if (absl::StartsWith(text, "# ")) return text.size();
  if (!BeginsCommand(text)) return std::min(text.find(' '), text.size());
  size_t end = text.size();
  for (const char* after : {";", ", ", ")", " (", "  "}) end = std::min(end, text.find(after));
  // The sign belongs to the command's last word.
  return std::min(text.find(' ', end), text.size());
}

// Where the lines below the first one begin.
size_t HangingIndent(absl::string_view line, size_t leading, size_t columns) {
  const size_t gap = line.find(kLabelGap, leading);
  if (leading < columns / 4 && gap != absl::string_view::npos) {
    const size_t text = line.find_first_not_of(' ', gap);
    const size_t indent = DisplayWidth(line.substr(0, text));
    if (text != absl::string_view::npos && indent <= columns / 2) return indent;
  }
  const size_t indent = leading < columns / 4 ? leading + (leading == 0 ? 2 : 4) : leading;
  return indent <= columns / 2 ? indent : 2;
}

}  // namespace

int DisplayWidth(absl::string_view text) {
  int width = 0;
  while (!text.empty()) {
    if (const size_t invisible = InvisibleLength(text); invisible > 0) {
      text.remove_prefix(invisible);
      continue;
    }
    const Utf8Character character = FirstUtf8Character(text);
    width += WidthOf(character.code);
    text.remove_prefix(character.size);
  }
  return width;
}

std::string WrappedLine(absl::string_view line, int columns) {
  const size_t leading = line.find_first_not_of(' ');
  const bool goes_on = absl::EndsWith(line, "\\");
  if (DisplayWidth(line) <= columns || leading == absl::string_view::npos || goes_on) {
    return std::string(line);
  }
  const size_t indent = HangingIndent(line, leading, static_cast<size_t>(columns));
  std::string wrapped(std::min(leading, indent), ' ');
  int width = static_cast<int>(wrapped.size());
  line.remove_prefix(leading);
  for (size_t blanks = 0; !line.empty();) {
    const absl::string_view whole = line.substr(0, WholeLength(line));
    const int own = DisplayWidth(whole);
    if (blanks > 0 && width + static_cast<int>(blanks) + own > columns) {
      absl::StrAppend(&wrapped, "\n", std::string(indent, ' '));
      width = static_cast<int>(indent);
    } else {
      wrapped.append(blanks, ' ');
      width += static_cast<int>(blanks);
    }
    absl::StrAppend(&wrapped, whole);
    width += own;
    line.remove_prefix(whole.size());
    blanks = std::min(line.find_first_not_of(' '), line.size());
    line.remove_prefix(blanks);
  }
  return wrapped;
}

std::string WrappedLines(absl::string_view text, int columns) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    lines.push_back(WrappedLine(line, columns));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace hpo
