// Tested by tests/integration/security/test_security_tokens.py.
#include "cli/commands/studies/admin_commands.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "common/base/status.h"
#include "common/files/user_folder.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

constexpr absl::Duration kLongestLifetime = absl::Hours(24 * 3653);

nlohmann::ordered_json ToJson(const TokenInfo& token) {
  const auto time = [](absl::Time at) -> nlohmann::ordered_json {
    if (at == absl::InfiniteFuture() || at == absl::InfinitePast()) return nullptr;
    return absl::FormatTime(absl::RFC3339_sec, at, absl::UTCTimeZone());
  };
  return {{"name", token.name},
          {"role", std::string(RoleName(token.role))},
          {"created", time(token.created)},
          {"expires", time(token.expires)},
          {"revoked", time(token.revoked)},
          {"previous_until", time(token.previous_until)}};
}

std::string FormatLocal(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M", time, absl::LocalTimeZone());
}

std::string StateOf(const TokenInfo& token) {
  if (token.revoked != absl::InfiniteFuture()) return "revoked " + FormatLocal(token.revoked);
  if (token.expires <= absl::Now()) return "expired " + FormatLocal(token.expires);
  if (token.expires != absl::InfiniteFuture()) return "expires " + FormatLocal(token.expires);
  return "in use";
}

absl::StatusOr<std::optional<absl::Duration>> ParseLifetime(const std::string& text) {
  if (text.empty()) return std::nullopt;
  absl::Duration lifetime;
  if (absl::ParseDuration(text, &lifetime) && lifetime > absl::ZeroDuration() &&
      lifetime <= kLongestLifetime) {
    return lifetime;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--expires-in: expected a duration such as 24h or 720h, up to ten years, got '", text, "'"));
}

// `is_elsewhere`: the server may keep it in a file, too.
void PrintNew(Session& session, const NewToken& made, bool is_elsewhere) {
  if (session.json) {
    nlohmann::ordered_json json = ToJson(made.token);
    json["join"] = made.join;
    PrintJson(json, session.out);
    return;
  }
  const bool works = made.token.role == Role::kWork;
  session.out << "Keep this join string, which is not shown again"
              << (is_elsewhere ? absl::StrCat("; a file join-", made.token.name,
                                              " next to the server's database has it, too, if it "
                                              "was there before")
                               : "")
              << ". Whoever has it has the role " << RoleName(made.token.role) << ":\n\n  "
              << (works ? "hpo-worker" : "hpo") << " --join " << made.join << "\n\n";
}

}  // namespace

absl::Status BackUpDatabase(Session& session, const std::string& file) {
  HPO_ASSIGN_OR_RETURN(const Bytes size, session.client.BackUp(file));
  if (session.json) {
    PrintJson(nlohmann::ordered_json{{"file", file}, {"bytes", size.count}}, session.out);
  } else {
    session.out << "wrote " << file << " (" << FormatBytes(size) << ")\n";
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunRestore(const std::string& backup, const std::string& database) {
  const std::string program = OwnProgram("hpo-server");
  std::vector<std::string> words = {program, "--restore", backup};
  if (!database.empty()) words.insert(words.end(), {"--db", database});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(program.c_str(), arguments.data());
  return absl::NotFoundError(
      absl::StrCat("cannot run ", program, ": ", std::strerror(errno), "; it restores databases"));
}

absl::Status ListTokens(Session& session) {
  HPO_ASSIGN_OR_RETURN(const std::vector<TokenInfo> tokens, session.client.ListTokens());
  if (session.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const TokenInfo& token : tokens) list.push_back(ToJson(token));
    PrintJson(list, session.out);
    return absl::OkStatus();
  }
  Table table({{.title = "token"}, {.title = "role"}, {.title = "created"}, {.title = "state"}});
  for (const TokenInfo& token : tokens) {
    table.AddRow({token.name, std::string(RoleName(token.role)), FormatLocal(token.created),
                  StateOf(token)});
  }
  session.out << table.Render(session.terminal.columns, session.terminal.colors);
  return absl::OkStatus();
}

absl::Status CreateToken(Session& session, const TokenOptions& options) {
  HPO_ASSIGN_OR_RETURN(const auto lifetime, ParseLifetime(options.lifetime));
  const std::optional<Role> role = RoleNamed(options.role);
  if (!role) return absl::InvalidArgumentError("--role: expected read, work, write or admin");
  HPO_ASSIGN_OR_RETURN(const NewToken made,
                       session.client.CreateToken(options.name, *role, lifetime));
  PrintNew(session, made, /*is_elsewhere=*/false);
  return absl::OkStatus();
}

absl::Status RotateToken(Session& session, const TokenOptions& options) {
  HPO_ASSIGN_OR_RETURN(const auto lifetime, ParseLifetime(options.lifetime));
  absl::Duration grace;
  if (!absl::ParseDuration(options.grace, &grace) || grace < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--grace: expected a duration such as 1h or 0s, got '", options.grace, "'"));
  }
  HPO_ASSIGN_OR_RETURN(const NewToken made,
                       session.client.RotateToken(options.name, grace, lifetime));
  PrintNew(session, made, /*is_elsewhere=*/true);
  if (!session.json && made.token.previous_until > absl::Now()) {
    session.out << "The secret before it is accepted until "
                << FormatLocal(made.token.previous_until) << ".\n";
  }
  return absl::OkStatus();
}

absl::Status RevokeToken(Session& session, const std::string& name) {
  HPO_RETURN_IF_ERROR(session.client.RevokeToken(name));
  if (session.json) {
    PrintJson(nlohmann::ordered_json{{"name", name}, {"revoked", true}}, session.out);
  } else {
    session.out << "revoked " << name << "; its connections are closed\n";
  }
  return absl::OkStatus();
}

}  // namespace hpo::cli
