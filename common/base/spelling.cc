#include "common/base/spelling.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

constexpr size_t kBeginning = 3;  // letters that say which word is meant

}  // namespace

int EditDistance(absl::string_view a, absl::string_view b) {
  // Rows of the dynamic programme: two back, one back, current.
  std::vector<int> before(b.size() + 1);
  std::vector<int> previous(b.size() + 1);
  std::vector<int> current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replace, previous[j] + 1, current[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

std::optional<std::string> ClosestWord(absl::string_view word,
                                       const std::vector<std::string>& candidates) {
  if (word.size() >= kBeginning) {
    for (const std::string& candidate : candidates) {
      if (absl::StartsWith(candidate, word)) return candidate;
    }
  }
  const int size = static_cast<int>(word.size());
  int allowed = std::min(std::max(1, size / 3), size - 1);
  std::optional<std::string> closest;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(word, candidate);
    if (distance > allowed) continue;
    closest = candidate;
    allowed = distance - 1;
  }
  return closest;
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates) {
  const std::optional<std::string> closest = ClosestWord(word, candidates);
  return closest ? absl::StrCat("; did you mean '", *closest, "'?") : "";
}

std::optional<std::string> NameContinued(absl::string_view word,
                                         const std::vector<std::string>& candidates) {
  const std::string beginning = absl::StrCat(word, "-");
  const std::string usual = absl::StrCat(word, "-uncased");
  std::vector<std::string> found;
  for (const std::string& candidate : candidates) {
    if (candidate == usual) return usual;
    if (!word.empty() && absl::StartsWith(candidate, beginning)) found.push_back(candidate);
  }
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

}  // namespace hpo
