#include "worker/trainer/scores/class_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hpo::trainer {
namespace {

absl::Status BadWeights(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "expected none, balanced, or weights above 0 by label (\"no=1, yes=2.5\"), got '", text,
      "'"));
}

std::vector<float> Balanced(const text::EncodedDataset& train, size_t num_labels) {
  std::vector<int64_t> counts(num_labels, 0);
  for (const int32_t label : train.labels) {
    if (label >= 0) ++counts[static_cast<size_t>(label)];
  }
  const auto rows = static_cast<double>(
      train.multi_label ? train.num_rows()
                        : std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const auto present = static_cast<double>(
      std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; }));
  std::vector<float> weights(num_labels, 1.0f);
  for (size_t i = 0; i < num_labels; ++i) {
    const auto count = static_cast<double>(counts[i]);
    if (counts[i] == 0) continue;
    // A label of every row has no rows to be weighed against.
    const double others = std::max(1.0, rows - count);
    weights[i] = static_cast<float>(train.multi_label ? others / count : rows / (present * count));
  }
  return weights;
}

}  // namespace

absl::StatusOr<ClassWeightSpec> ParseClassWeights(absl::string_view text) {
  if (text == "none") return ClassWeightSpec{};
  if (text == "balanced") return ClassWeightSpec{.kind = ClassWeightSpec::Kind::kBalanced};
  ClassWeightSpec spec{.kind = ClassWeightSpec::Kind::kByLabel};
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t equals = part.rfind('=');
    if (equals == absl::string_view::npos) return BadWeights(text);
    const std::string label(absl::StripAsciiWhitespace(part.substr(0, equals)));
    double weight = 0.0;
    if (!absl::SimpleAtod(part.substr(equals + 1), &weight) || !std::isfinite(weight) ||
        !(weight > 0.0) || label.empty() || !spec.by_label.emplace(label, weight).second) {
      return BadWeights(text);
    }
  }
  return spec;
}

absl::StatusOr<std::vector<float>> ClassWeights(const ClassWeightSpec& spec,
                                                const std::vector<std::string>& labels,
                                                const text::EncodedDataset& train) {
  if (spec.kind == ClassWeightSpec::Kind::kNone) return std::vector<float>();
  if (spec.kind == ClassWeightSpec::Kind::kBalanced) return Balanced(train, labels.size());
  std::vector<float> weights(labels.size(), 1.0f);
  for (const auto& [label, weight] : spec.by_label) {
    const auto found = std::find(labels.begin(), labels.end(), label);
    if (found == labels.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("train.class_weights: expected labels of the task (",
                       absl::StrJoin(labels, ", "), "), got '", label, "'"));
    }
    weights[static_cast<size_t>(found - labels.begin())] = static_cast<float>(weight);
  }
  return weights;
}

}  // namespace hpo::trainer
