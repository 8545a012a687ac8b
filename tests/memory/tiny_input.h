// The smallest BERT that has every kind of tensor, so that its memory can be added up by hand.
#pragma once

#include "memory/need/memory_estimate.h"

namespace hpo::memory {

inline EstimateInput TinyInput() {
  EstimateInput input;
  input.model.family = "bert";
  input.model.vocab_size = 10;
  input.model.hidden_size = 8;
  input.model.num_layers = 1;
  input.model.num_heads = 2;
  input.model.intermediate_size = 16;
  input.model.max_positions = 32;
  input.model.type_vocab_size = 2;
  input.config.batch_size = 1;
  input.config.max_length = 16;
  input.workload.num_labels = 2;
  input.device.kind = "cpu";
  return input;
}

// bert-base-uncased on 512 tokens.
inline EstimateInput BertBaseInput() {
  EstimateInput input = TinyInput();
  input.model.vocab_size = 30522;
  input.model.hidden_size = 768;
  input.model.num_layers = 12;
  input.model.num_heads = 12;
  input.model.intermediate_size = 3072;
  input.model.max_positions = 512;
  input.config.batch_size = 16;
  input.config.max_length = 512;
  return input;
}

inline MemoryPlan PlanOf(int64_t effective_batch, int64_t micro_batch) {
  MemoryPlan plan;
  plan.effective_batch = effective_batch;
  plan.micro_batch = micro_batch;
  return plan;
}

}  // namespace hpo::memory
