#include "cli/render/trial_warnings.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hpo::cli {

std::vector<std::string> TrialWarnings(absl::string_view log, size_t most) {
  constexpr absl::string_view kWarning = " warn trial #";
  std::vector<std::string> warnings;
  std::set<std::string> known;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(kWarning, 1));
    const std::pair<absl::string_view, absl::string_view> trial =
        absl::StrSplit(parts.second, absl::MaxSplits(": ", 1));
    // Before it stands the time alone.
    if (parts.first.find(' ') != absl::string_view::npos || trial.second.empty()) continue;
    const std::string text(trial.second);
    if (known.insert(text).second && known.size() <= most) warnings.push_back(text);
  }
  if (known.size() > most) {
    warnings.push_back(absl::StrCat(known.size() - most, " more are in worker.log"));
  }
  return warnings;
}

}  // namespace hpo::cli
