// Batches of varying length, as a trial may draw them: which rows meet is chance, but how long the
// longest of them is follows from the workload. Cut as worker/text/batcher.h cuts them.
// Pure: the same input gives the same batches on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "common/memory/memory_estimate.h"
#include "common/memory/trial_passes.h"

namespace hpo {

struct DrawnBatches {
  // The heaviest texts, which the probe runs; where texts ask queries alone, as else those are the
  // longest rows.
  std::vector<BatchShape> probe;
  // The parts of each effective batch: of many equal ones the first two, a middle one and the last.
  std::vector<std::vector<BatchShape>> steps;
  std::vector<BatchShape> evaluation;  // longest rows first
};

// `num_steps` steps of one epoch after the other, each with its shorter last one, and an evaluation
// of few batches. Rows are drawn without being put back; the queries of a text are of one length,
// as most of each is the text. Nothing without a histogram of the training data.
DrawnBatches DrawBatches(const EstimateInput& input, const MemoryPlan& plan, int64_t num_steps);

}  // namespace hpo
