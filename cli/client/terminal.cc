#include "cli/client/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "common/base/utf8.h"
#include "common/command_line/wrapped_line.h"

namespace hpo::cli {
namespace {

bool WantsColors() {
  const char* const forbidden = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  const bool is_dumb = kind == nullptr || absl::string_view(kind) == "dumb";
  return (forbidden == nullptr || *forbidden == '\0') && !is_dumb;
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
    width += DisplayWidth(text.substr(0, character.size));
    if (width > columns - 1) break;
    cut.append(text.data(), character.size);
    text.remove_prefix(character.size);
  }
  return cut + "…";
}

}  // namespace hpo::cli
