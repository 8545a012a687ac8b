#include "cli/render/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace hpo {
namespace {

bool WantsColors() {
  const char* const forbidden = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  const bool is_dumb = kind == nullptr || absl::string_view(kind) == "dumb";
  return (forbidden == nullptr || *forbidden == '\0') && !is_dumb;
}

struct Character {
  uint32_t code = 0;  // 0: not valid UTF-8
  size_t size = 1;    // bytes
};

// The character that `text` begins with; text is not empty.
Character FirstCharacter(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {.code = byte(0), .size = 1};
  const size_t size = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : byte(0) >= 0xC2 ? 2 : 0;
  if (size == 0 || byte(0) > 0xF4 || text.size() < size) return {};
  uint32_t code = byte(0) & (0xFF >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  return {.code = code, .size = size};
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

bool IsControl(uint32_t code) {
  return code < 0x20 || Within(code, 0x7F, 0x9F) || Within(code, 0x202A, 0x202E) ||
         Within(code, 0x2066, 0x2069);
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
    const Character character = FirstCharacter(text);
    width += WidthOf(character.code);
    text.remove_prefix(character.size);
  }
  return width;
}

std::string Printable(absl::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    if (character.code == 0 || IsControl(character.code)) {
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
    const Character character = FirstCharacter(text);
    width += WidthOf(character.code);
    if (width > columns - 1) break;
    cut.append(text.data(), character.size);
    text.remove_prefix(character.size);
  }
  return cut + "…";
}

}  // namespace hpo
