// Batches of varying length, as a trial may draw them: which rows meet is chance, but how long the
// longest of them is follows from the workload. Cut as worker/text/batching/batcher.h cuts them.
// Pure: the same input gives the same batches on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/need/memory_estimate.h"
#include "memory/trace/trial_passes.h"

namespace hpo::memory {

struct DrawnBatches {
  // The parts of each effective batch: of many equal ones the first two, a middle one and the last.
  std::vector<std::vector<BatchShape>> steps;
  // Of the evaluation, which runs longest rows first, the first two batches and the last.
  std::vector<BatchShape> evaluation;
};

// `num_steps` steps of one epoch after the other, each with its shorter last one, and where the
// configuration groups rows by length, of pools as the batcher's. Rows are drawn without being put
// back; the queries of a text are of one length, as most of each is the text. Of an evaluation the
// texts that ask most have the longest rows. Nothing without a histogram of the data.
DrawnBatches DrawBatches(const EstimateInput& input, const MemoryPlan& plan, int64_t num_steps);

}  // namespace hpo::memory
