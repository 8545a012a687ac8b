#include "server/api/page_token.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files/sha256.h"

namespace hpo::server {
namespace {

constexpr size_t kMarkLength = 16;

std::string MarkOf(absl::string_view study, const TrialFilter& filter) {
  std::string text = absl::StrCat(study, filter.newest_first ? "|newest" : "|oldest");
  for (const TrialState state : filter.states) absl::StrAppend(&text, "|", Name(state));
  for (const PruneReason reason : filter.prune_reasons) absl::StrAppend(&text, "|", Name(reason));
  return Sha256Hex(text).substr(0, kMarkLength);
}

}  // namespace

std::string MakePageToken(absl::string_view study, const TrialFilter& filter, TrialNumber last) {
  return absl::WebSafeBase64Escape(absl::StrCat(last.value, ":", MarkOf(study, filter)));
}

absl::StatusOr<TrialNumber> ReadPageToken(absl::string_view study, const TrialFilter& filter,
                                          absl::string_view token) {
  std::string text;
  TrialNumber last;
  if (absl::WebSafeBase64Unescape(token, &text)) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
    if (absl::SimpleAtoi(parts.first, &last.value) && parts.second == MarkOf(study, filter)) {
      return last;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("page_token: expected one that ListTrials gave for this study and filter, got '",
                   token, "'"));
}

}  // namespace hpo::server
