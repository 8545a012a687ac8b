#include "common/command_line/misplaced_secret.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hpo {
namespace {

constexpr char kBegin[] = "hpo1.";
// Of what follows; a name that happens to begin so is shorter.
constexpr size_t kFewestLetters = 16;
constexpr char kJoin[] = "--join";
constexpr const char* kVariables[] = {"HPO_SERVER", "HPO_JOIN_FILE", "HPO_STUDY"};

std::string Misplaced(absl::string_view place) {
  return absl::StrCat(place,
                      ": got a join string, which holds a secret and belongs elsewhere: give it by "
                      "--join or HPO_JOIN, or its file by --join file:PATH or HPO_JOIN_FILE");
}

// The option that the word gives or follows, or how else people know it.
std::string PlaceOf(absl::string_view word, absl::string_view before) {
  if (absl::StartsWith(word, "--") && absl::StrContains(word, '=')) {
    const absl::string_view name = word.substr(0, word.find('='));
    if (!HasJoinString(name)) return std::string(name);
  }
  if (absl::StartsWith(before, "-") && before != "--" && !HasJoinString(before)) {
    return std::string(before.substr(0, before.find('=')));
  }
  return "the command line";
}

bool IsValueOfJoin(absl::string_view word, absl::string_view before) {
  const bool has_own = absl::ConsumePrefix(&word, absl::StrCat(kJoin, "="));
  return (has_own || before == kJoin) && !absl::StartsWith(word, "file:");
}

}  // namespace

bool HasJoinString(absl::string_view text) {
  for (size_t at = text.find(kBegin); at != absl::string_view::npos;
       at = text.find(kBegin, at + 1)) {
    const absl::string_view rest = text.substr(at + sizeof(kBegin) - 1);
    const auto* const end = std::find_if_not(rest.begin(), rest.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
    });
    if (static_cast<size_t>(end - rest.begin()) >= kFewestLetters) return true;
  }
  return false;
}

std::optional<std::string> FindMisplacedSecret(int argc, const char* const* argv) {
  bool for_others = false;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    const absl::string_view before = i > 1 ? argv[i - 1] : "";
    for_others = for_others || before == "--";
    if (!HasJoinString(word) || (!for_others && IsValueOfJoin(word, before))) continue;
    return Misplaced(PlaceOf(word, before));
  }
  for (const char* variable : kVariables) {
    const char* const value = std::getenv(variable);
    if (value != nullptr && HasJoinString(value)) return Misplaced(variable);
  }
  return std::nullopt;
}

}  // namespace hpo
