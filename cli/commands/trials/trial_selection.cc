#include "cli/commands/trials/trial_selection.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hpo::cli {

std::vector<Trial> SelectTrials(std::vector<Trial> trials, const std::vector<int64_t>& numbers,
                                bool in_order_of_numbers) {
  absl::flat_hash_map<int64_t, size_t> places;
  for (size_t i = 0; i < numbers.size(); ++i) places.try_emplace(numbers[i], i);
  std::erase_if(trials,
                [&](const Trial& trial) { return !places.contains(trial.id.number.value); });
  if (!in_order_of_numbers) return trials;
  std::sort(trials.begin(), trials.end(), [&](const Trial& a, const Trial& b) {
    return places.at(a.id.number.value) < places.at(b.id.number.value);
  });
  return trials;
}

absl::Status OfOption(const absl::Status& refused) {
  const bool is_of_option = absl::StartsWith(refused.message(), "where: ") ||
                            absl::StartsWith(refused.message(), "sort: ");
  if (!is_of_option) return refused;
  return absl::Status(refused.code(), absl::StrCat("--", refused.message()));
}

bool HasTags(const Attributes& attributes, const std::vector<std::string>& tags) {
  return std::all_of(tags.begin(), tags.end(),
                     [&](const std::string& tag) { return HasTag(attributes, tag); });
}

}  // namespace hpo::cli
