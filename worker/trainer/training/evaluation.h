// Metrics of a model on a data set.
#pragma once

#include <cstdint>
#include <span>

#include "common/trial.h"
#include "worker/text/batcher.h"
#include "worker/text/encoded_dataset.h"
#include "worker/trainer/models/text_classifier.h"

namespace hpo {

// Runs `batches` of `data` without dropout and without gradients. All of EvaluationBatches give the
// data set's metrics; the first of them, which has the longest rows, needs the most memory. Gives
// "accuracy", "macro_f1", "mcc", "micro_f1" (see ClassificationCounts) and "loss", the mean over
// rows. A label is predicted when its logit is the largest, or with several labels a row when it is
// positive. There is at least one row. Leaves the model in training mode. Throws what torch throws.
Metrics Evaluate(TextClassifier& model, const EncodedDataset& data,
                 std::span<const BatchRows> batches, int64_t max_positions, torch::Device device);

}  // namespace hpo
