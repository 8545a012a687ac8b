// Metrics of a model on a data set.
#pragma once

#include <cstdint>

#include "common/trial.h"
#include "worker/text/encoded_dataset.h"
#include "worker/trainer/models/text_classifier.h"

namespace hpo {

// Runs every row without dropout and without gradients, `rows_per_batch` (> 0) at a time, longest
// rows first, so that the first batch needs the most memory. Gives "accuracy", "macro_f1",
// "micro_f1" (see ClassificationCounts) and "loss", the mean over rows. A label is predicted when
// its logit is the largest, or with several labels a row when it is positive.
// `data` is not empty. Leaves the model in training mode. Throws what torch throws.
Metrics Evaluate(TextClassifier& model, const EncodedDataset& data, int64_t rows_per_batch,
                 int64_t max_positions, torch::Device device);

}  // namespace hpo
