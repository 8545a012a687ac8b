#include "worker/trainer/training/probe.h"

#include <algorithm>

namespace hpo {

BatchRows HeaviestBatch(const EncodedDataset& data, const MemoryPlan& plan) {
  const int64_t two_parts = 2 * std::min(plan.micro_batch, data.num_rows());
  const int64_t rows = std::min({plan.effective_batch, two_parts, data.num_rows()});
  return EvaluationBatches(data, rows).front();
}

RandomStateKeeper::RandomStateKeeper(torch::Device device)
    : generator_(at::globalContext().defaultGenerator(device)), state_(generator_.clone()) {}

RandomStateKeeper::~RandomStateKeeper() {
  if (!generator_.device().is_cpu()) {
    generator_.set_current_seed(state_.current_seed());
    generator_.set_offset(state_.get_offset());
    return;
  }
  auto* const now = generator_.get<at::CPUGeneratorImpl>();
  auto* const before = state_.get<at::CPUGeneratorImpl>();
  now->set_engine(before->engine());
  now->set_next_float_normal_sample(before->next_float_normal_sample());
  now->set_next_double_normal_sample(before->next_double_normal_sample());
}

}  // namespace hpo
