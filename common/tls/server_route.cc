#include "common/tls/server_route.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/files/read_file.h"

namespace hpo::tls {
namespace {

constexpr char kOption[] = "--join";
constexpr char kVariable[] = "HPO_JOIN";
constexpr char kFileVariable[] = "HPO_JOIN_FILE";
constexpr char kBegin[] = "hpo1.";
// "hpo1." and the certificate's digest stay: they are no secret, and strings differ by them.
constexpr size_t kLettersShown = 5 + 43 + 1;

std::string VariableOr(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

absl::StatusOr<std::optional<JoinSource>> JoinSource::Find(const std::string& option) {
  std::optional<JoinSource> source;
  absl::string_view file = option;
  if (absl::ConsumePrefix(&file, "file:")) {
    source = JoinSource(kOption, "", std::string(file));
  } else if (!option.empty()) {
    source = JoinSource(kOption, option, "");
  } else if (const std::string text = VariableOr(kVariable); !text.empty()) {
    source = JoinSource(kVariable, text, "");
  } else if (const std::string path = VariableOr(kFileVariable); !path.empty()) {
    source = JoinSource(kFileVariable, "", path);
  }
  if (source) HPO_RETURN_IF_ERROR(source->Read().status());
  return source;
}

absl::StatusOr<JoinString> JoinSource::Read() const {
  if (file_.empty()) {
    absl::StatusOr<JoinString> join = ParseJoinString(text_);
    return join.ok() ? join : absl::StatusOr<JoinString>(Annotate(join.status(), name_));
  }
  const absl::StatusOr<std::string> text = ReadFile(file_);
  if (!text.ok()) return Annotate(text.status(), name_);
  absl::StatusOr<JoinString> join = ParseJoinString(*text);
  if (join.ok()) return join;
  return Annotate(join.status(), absl::StrCat(name_, ": ", file_));
}

PrivateArguments::PrivateArguments(int count, char** arguments)
    : words_(arguments, arguments + count) {
  for (const std::string& word : words_) pointers_.push_back(word.c_str());
  pointers_.push_back(nullptr);
  for (int i = 1; i < count; ++i) {
    char* const begin = std::strstr(arguments[i], kBegin);
    if (begin == nullptr || std::strlen(begin) <= kLettersShown) continue;
    char* const end = std::strchr(begin, '@');
    for (char* c = begin + kLettersShown; *c != '\0' && c != end; ++c) *c = '*';
  }
}

absl::StatusOr<ServerRoute> FindRoute(const std::optional<JoinSource>& join,
                                      const std::string& server,
                                      std::function<void(const absl::Status&)> on_change) {
  if (!join) return ServerRoute{.shown = server, .dialed = server, .forwarder = nullptr};
  HPO_ASSIGN_OR_RETURN(const JoinString now, join->Read());
  ServerRoute route;
  route.shown = now.Address();
  HPO_ASSIGN_OR_RETURN(route.forwarder, Forwarder::StartForThisProcess(
                                            {.join = [source = *join] { return source.Read(); },
                                             .on_change = std::move(on_change)}));
  route.dialed = route.forwarder->address();
  return route;
}

}  // namespace hpo::tls
