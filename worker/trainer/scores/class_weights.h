// What each class weighs in the loss. Free of torch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/batching/encoded_dataset.h"

namespace hpo::trainer {

// The parameter train.class_weights.
struct ClassWeightSpec {
  enum class Kind { kNone, kBalanced, kByLabel };
  Kind kind = Kind::kNone;
  std::map<std::string, double> by_label;  // of kByLabel; finite, above 0
  bool operator==(const ClassWeightSpec&) const = default;
};

// How the training loss weighs labels; that of the validation data is plain, so that trials
// compare.
struct LabelLoss {
  std::vector<float> weights;  // of each label (ClassWeights); empty: none
  double smoothing = 0.0;
};

// "none", "balanced", or weights by label: "no=1, yes=2.5". A label may hold '=', not ','.
//   InvalidArgument  another text; a weight that is no number above 0; a label twice; without the
//                    parameter's name
absl::StatusOr<ClassWeightSpec> ParseClassWeights(absl::string_view text);

// A weight for each of `labels`; empty without weights.
// Single label: those of torch's CrossEntropyLoss(weight=). Balanced is scikit-learn's: rows over
// (labels that occur x rows of the label). Several labels a row: those of BCEWithLogitsLoss
// (pos_weight=). Balanced is torch's advice: rows without the label over rows with it. A label that
// no row has, or that is not named, weighs 1. A negative label is none.
//   InvalidArgument  a named label that is none of `labels`; names it
absl::StatusOr<std::vector<float>> ClassWeights(const ClassWeightSpec& spec,
                                                const std::vector<std::string>& labels,
                                                const text::EncodedDataset& train);

}  // namespace hpo::trainer
