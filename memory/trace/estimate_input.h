// What memory is a function of.
#pragma once

#include <compare>

#include "common/models/model_spec.h"
#include "common/models/workload.h"
#include "common/protocol/worker_facts.h"
#include "memory/trace/training_config.h"

namespace hpo::memory {

// Everything an estimate is a function of, apart from the plan.
struct EstimateInput {
  ModelShape model;
  TrainingConfig config;
  Workload workload;
  DeviceProfile device;
  auto operator<=>(const EstimateInput&) const = default;

  // Of the classifier's head; language modelling has none: its product is the word embeddings' or
  // a part of the model.
  int64_t NumOutputs() const {
    return workload.task == TaskKind::kLanguageModeling ? 0 : workload.num_labels;
  }
};

}  // namespace hpo::memory
