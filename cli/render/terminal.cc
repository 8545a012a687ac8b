#include "cli/render/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "common/base/utf8.h"

namespace hpo {
namespace {

bool WantsColors() {
  const char* const forbidden = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  const bool is_dumb = kind == nullptr || absl::string_view(kind) == "dumb";
  return (forbidden == nullptr || *forbidden == '\0') && !is_dumb;
}

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

}  // namespace

Terminal DetectTerminal(int descriptor) {
  Terminal terminal{.interactive = isatty(descriptor) == 1};
  terminal.colors = terminal.interactive && WantsColors();
  int columns = 0;
  const char* wanted = std::getenv("COLUMNS");
  if (wanted != nullptr && absl::SimpleAtoi(wanted, &columns) && columns > 0) {
    terminal.columns = columns;
    return terminal;
  }
  winsize size{};
  if (terminal.interactive && ioctl(descriptor, TIOCGWINSZ, &size) == 0) {
    terminal.columns = size.ws_col;
  }
  return terminal;
}

int DisplayWidth(absl::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Utf8Character character = FirstUtf8Character(text);
    width += WidthOf(character.code);
    text.remove_prefix(character.size);
  }
  return width;
}

std::string Printable(absl::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = FirstUtf8Character(text);
    if (character.code == 0 || SteersTerminal(character.code)) {
      safe += '?';
    } else {
      safe.append(text.data(), character.size);
    }
    text.remove_prefix(character.size);
  }
  return safe;
}

std::string FitTo(absl::string_view text, int columns) {
  if (DisplayWidth(text) <= columns) return std::string(text);
  std::string cut;
  int width = 0;
  while (!text.empty()) {
    const Utf8Character character = FirstUtf8Character(text);
    width += WidthOf(character.code);
    if (width > columns - 1) break;
    cut.append(text.data(), character.size);
    text.remove_prefix(character.size);
  }
  return cut + "…";
}

}  // namespace hpo
