#include "worker/trainer/data/probe.h"

#include <algorithm>

namespace hpo::trainer {

text::BatchRows HeaviestBatch(const text::EncodedDataset& data, const MemoryPlan& plan) {
  const int64_t two_parts = 2 * std::min(plan.micro_batch, data.num_rows());
  const int64_t rows = std::min({plan.effective_batch, two_parts, data.num_rows()});
  return text::EvaluationBatches(data, rows).front();
}

}  // namespace hpo::trainer
