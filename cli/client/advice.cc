#include "cli/client/advice.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/command_line/server_address.h"
#include "common/command_line/shell_word.h"

namespace hpo::cli {
namespace {

constexpr absl::string_view kGoingOn = "; to go on: hpo ";

// What begins a command that asks a server.
constexpr absl::string_view kCommands[] = {
    "hpo best",         "hpo enqueue",      "hpo export",       "hpo import",
    "hpo status",       "hpo trial",        "hpo watch",        "hpo-worker",
    "hpo admin backup", "hpo study create", "hpo study delete", "hpo study edit",
    "hpo study extend", "hpo study list",   "hpo study pause",  "hpo study restore",
    "hpo study resume", "hpo study show",   "hpo study stop",   "hpo study annotate"};

bool IsPartOfWord(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '/';
}

// Length of the command that asks a server and with which `rest` begins; 0: there is none.
size_t CommandLength(absl::string_view rest) {
  const bool begins =
      std::any_of(std::begin(kCommands), std::end(kCommands), [rest](absl::string_view command) {
        return absl::StartsWith(rest, command) &&
               (rest.size() == command.size() || !IsPartOfWord(rest[command.size()]));
      });
  if (!begins) return 0;
  size_t end = std::min(rest.size(), rest.find_first_of(";,)\n"));
  end = std::min(end, rest.find(" ("));
  return end;
}

}  // namespace

std::string WithServer(absl::string_view text, absl::string_view address) {
  if (address.empty() || IsUsualAddress(address)) return std::string(text);
  const std::string server = absl::StrCat(" --server ", ShellWord(std::string(address)));
  std::string result;
  while (!text.empty()) {
    const bool starts_word = result.empty() || !IsPartOfWord(result.back());
    const size_t length = starts_word ? CommandLength(text) : 0;
    const absl::string_view taken = text.substr(0, std::max<size_t>(1, length));
    result.append(taken.data(), taken.size());
    if (length > 0 && !absl::StrContains(taken, " --server ")) result += server;
    text.remove_prefix(taken.size());
  }
  return result;
}

std::string WithoutGoingOn(absl::string_view text) {
  return std::string(text.substr(0, text.find(kGoingOn)));
}

}  // namespace hpo::cli
