// What the probe of a trial runs: before the first step counts, the batch that needs more memory
// than any that will come, as a step that is thrown away.
#pragma once

#include "common/study/trial.h"
#include "worker/text/batching/batcher.h"
#include "worker/text/batching/encoded_dataset.h"

namespace hpo::trainer {

// The longest rows of `data`, as many as two parts of `plan` have: no effective batch needs more
// under this plan. One part alone would not do where there are several, because the second and
// later ones meet the gradients of those before.
text::BatchRows HeaviestBatch(const text::EncodedDataset& data, const MemoryPlan& plan);

}  // namespace hpo::trainer
