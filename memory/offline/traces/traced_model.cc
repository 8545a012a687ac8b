#include "memory/offline/traces/traced_model.h"

#include <utility>

#include "memory/trace/recomputation_trace.h"

namespace hpo::memory {

AttentionShape AttentionOf(const ModelShape& shape, const ModelBatch& batch) {
  return {.batch = batch.rows,
          .tokens = batch.tokens,
          .heads = shape.num_heads,
          .head_size = shape.HeadSize(),
          .dropout = shape.attention_dropout};
}

TracedTensor RunModelLayer(TracedDevice& device, const TracedModel& model,
                           std::function<TracedTensor()> layer) {
  return model.checkpointing ? RunCheckpointed(device, std::move(layer)) : layer();
}

}  // namespace hpo::memory
