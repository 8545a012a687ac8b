#include "cli/commands/open_command.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tls/join_string.h"
#include "common/tls/server_route.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace hpo::cli {
namespace {

std::string Encoded(absl::string_view name) {
  std::string encoded;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = absl::ascii_isalnum(byte) || c == '-' || c == '_' || c == '.';
    if (is_plain) {
      encoded.push_back(c);
    } else {
      absl::StrAppend(&encoded, "%", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  return encoded;
}

// The part of a join string that proves a token: what stands between its second dot and '@'.
absl::StatusOr<std::string> TokenOf(const std::string& option) {
  HPO_ASSIGN_OR_RETURN(const std::optional<tls::JoinSource> source, tls::JoinSource::Find(option));
  if (!source) return std::string();
  HPO_ASSIGN_OR_RETURN(const tls::JoinString join, source->Read());
  const std::string text = tls::FormatJoinString(join);
  const size_t dot = text.find('.', text.find('.') + 1);
  return text.substr(dot + 1, text.find('@') - dot - 1);
}

}  // namespace

std::string PageAddress(const std::string& page, const std::string& study,
                        absl::string_view token) {
  return absl::StrCat(page, study.empty() ? "" : "studies/", Encoded(study),
                      token.empty() ? "" : "?token=", token);
}

bool OpenInBrowser(const std::string& address) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return false;
  std::string program = "xdg-open";
  std::string word = address;
  char* const words[] = {program.data(), word.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, words[0], nullptr, nullptr, words, environ) != 0) return false;
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

absl::Status OpenPage(Session& session, bool in_browser) {
  HPO_ASSIGN_OR_RETURN(const ServerStatus server, session.client.GetServer());
  if (server.page.empty()) {
    return absl::FailedPreconditionError(
        "expected a server with a page, got one without; start it with: hpo-server --http "
        "127.0.0.1:8080");
  }
  if (!session.study.empty()) {
    HPO_RETURN_IF_ERROR(session.client.studies().GetStudy(session.study).status());
  }
  std::string token;
  if (absl::StartsWith(server.page, "https://")) {
    HPO_ASSIGN_OR_RETURN(token, TokenOf(session.join));
  }
  const std::string address = PageAddress(server.page, session.study, token);
  session.out << address << std::endl;
  if (in_browser) OpenInBrowser(address);
  return absl::OkStatus();
}

}  // namespace hpo::cli
