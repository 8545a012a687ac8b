#include "common/command_line/terminal_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/utf8.h"

namespace hpo {
namespace {

constexpr char kEscape = '\x1b';
constexpr char kBell = '\a';
constexpr char kReset[] = "\x1b[0m";

bool Within(char c, char low, char high) { return low <= c && c <= high; }

// How long the escape sequence is that `text` begins with; of one that does not end, the escape
// character alone.
size_t SequenceLength(absl::string_view text) {
  if (text.size() < 2) return 1;
  size_t at = 2;
  if (text[1] == '[') {
    while (at < text.size() && Within(text[at], '0', '?')) ++at;
    while (at < text.size() && Within(text[at], ' ', '/')) ++at;
    return at < text.size() && Within(text[at], '@', '~') ? at + 1 : 1;
  }
  // Operating system commands and other strings, up to the bell or "ESC \".
  if (absl::string_view("]PX^_").find(text[1]) != absl::string_view::npos) {
    for (; at < text.size(); ++at) {
      if (text[at] == kBell) return at + 1;
      if (text[at] == kEscape) return text.substr(at + 1, 1) == "\\" ? at + 2 : 1;
    }
    return 1;
  }
  at = 1;
  while (at < text.size() && Within(text[at], ' ', '/')) ++at;
  return at < text.size() && Within(text[at], '0', '~') ? at + 1 : 1;
}

// Whether a sequence sets colours or the weight of letters and nothing else: neither hides them nor
// blinks.
bool IsColor(absl::string_view sequence) {
  if (sequence.size() < 3 || sequence[1] != '[' || sequence.back() != 'm') return false;
  const std::vector<absl::string_view> codes =
      absl::StrSplit(sequence.substr(2, sequence.size() - 3), absl::ByAnyChar(";:"));
  bool extended = false;  // the numbers of a colour follow
  return std::all_of(codes.begin(), codes.end(), [&extended](absl::string_view text) {
    int code = 0;
    if (!text.empty() && (!absl::SimpleAtoi(text, &code) || code < 0)) return false;
    if (extended) return code <= 255;
    extended = code == 38 || code == 48;
    return code <= 4 || code == 7 || (code >= 21 && code <= 24) || code == 27 ||
           (code >= 29 && code <= 49) || (code >= 90 && code <= 107);
  });
}

class LineReader {
 public:
  explicit LineReader(PrintedColors colors) : keeps_colors_(colors == PrintedColors::kKept) {}

  std::string Read(absl::string_view line) {
    while (!line.empty()) line.remove_prefix(Take(line));
    const bool shows = std::any_of(characters_.begin(), characters_.end(), IsVisible);
    if (!shows) characters_.swap(overwritten_);
    std::string text = absl::StrJoin(characters_, "");
    if (colored_) text += kReset;
    return text;
  }

 private:
  static bool IsVisible(const std::string& character) {
    return character[0] != kEscape &&
           !absl::ascii_isspace(static_cast<unsigned char>(character[0]));
  }

  // Takes what `text` begins with; how much that is.
  size_t Take(absl::string_view text) {
    const char first = text[0];
    if (first == kEscape) return TakeSequence(text);
    if (first == '\r') {
      // A part that shows nothing, as one that wipes the line, overwrites nothing that is read.
      if (std::any_of(characters_.begin(), characters_.end(), IsVisible)) {
        overwritten_.swap(characters_);
      }
      characters_.clear();
    } else if (first == '\b') {
      if (!characters_.empty()) characters_.pop_back();
    } else if (first == '\t' || !absl::ascii_iscntrl(static_cast<unsigned char>(first))) {
      const Utf8Character character = FirstUtf8Character(text);
      const bool safe = character.code != 0 && (first == '\t' || !SteersTerminal(character.code));
      characters_.emplace_back(safe ? text.substr(0, character.size) : "?");
      return character.size;
    }
    return 1;
  }

  size_t TakeSequence(absl::string_view text) {
    const size_t length = SequenceLength(text);
    if (keeps_colors_ && IsColor(text.substr(0, length))) {
      characters_.emplace_back(text.substr(0, length));
      colored_ = true;
    }
    return length;
  }

  const bool keeps_colors_;
  std::vector<std::string> characters_;  // and colours, since the last carriage return
  std::vector<std::string> overwritten_;
  bool colored_ = false;
};

}  // namespace

std::string ShownLine(absl::string_view line, PrintedColors colors) {
  const auto is_plain = [](char c) { return Within(c, ' ', '~') || c == '\t'; };
  if (std::all_of(line.begin(), line.end(), is_plain)) return std::string(line);
  return LineReader(colors).Read(line);
}

std::string ShownLines(absl::string_view text, PrintedColors colors) {
  return absl::StrJoin(absl::StrSplit(text, '\n'), "\n",
                       [colors](std::string* out, absl::string_view line) {
                         absl::StrAppend(out, ShownLine(line, colors));
                       });
}

}  // namespace hpo
