// What the traces of model_trace.h are made from, and what they share.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "memory/offline/traces/model_trace.h"
#include "memory/ops/attention_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

struct TracedModel {
  ModelShape shape;
  TaskHead head;                         // as MakeModelTrace takes it
  std::vector<ParameterTensor> tensors;  // ParameterTensors(shape, head)
  TracedAdapters adapters;
  bool checkpointing = false;
};

// Of every layer, over all rows and tokens of a batch.
AttentionShape AttentionOf(const ModelShape& shape, const ModelBatch& batch);

// One layer of a model, from its input; held until backward has passed it where it is
// checkpointed.
TracedTensor RunModelLayer(TracedDevice& device, const TracedModel& model,
                           std::function<TracedTensor()> layer);

}  // namespace hpo::memory
