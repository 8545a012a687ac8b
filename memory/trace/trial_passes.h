// The batches of a trial, as memory sees them: how many rows of how many tokens, in which order.
// Pure; safe from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/models/packed_rows.h"
#include "memory/trace/estimate_input.h"

namespace hpo::memory {

// One batch as it runs: a part of an effective batch, or of an evaluation.
struct BatchShape {
  int64_t rows = 1;
  int64_t tokens = 16;  // of every row, padding included; packed: of the longest
  PackedRows packed = {};
  bool operator==(const BatchShape&) const = default;

  static BatchShape Of(PackedRows packed);
  int64_t TotalTokens() const;
};

// Steps, and the evaluation that follows them.
struct MeasuredSteps {
  std::vector<std::vector<BatchShape>> steps;  // the parts of each effective batch
  std::vector<BatchShape> evaluation;
  bool operator==(const MeasuredSteps&) const = default;
};

// What of a trial is run, in this order; the probe before it too.
struct TrialPasses {
  std::vector<MeasuredSteps> stretches;
  bool begins_with_probe = true;  // the first stretch is the probe
  bool scales_gradients = true;   // clipping finds the norm too large
};

// Tokens of a batch whose longest row is that of `lengths`: truncated, padded, no more than the
// model has positions.
int64_t LongestTokens(const EstimateInput& input, const LengthHistogram& lengths);

// Training texts by the number of their queries, but for those that are left out; empty: a text is
// one query.
LengthHistogram TrainingQueries(const EstimateInput& input);

// The largest batches that the workload allows: every part has its longest row, in the data or
// allowed, and packed its longest rows, those of the first part and those next to them. Of equal
// parts after the first there is one.
TrialPasses LargestPasses(const EstimateInput& input, const MemoryPlan& plan);

// Of all the passes of a trial, those that its peak can be in: no other has as many rows and as
// many tokens, packed in each row, its groups no larger. An effective batch's first part and its
// later ones, which meet gradients, compare apart.
TrialPasses DecidingPasses(const TrialPasses& all);

}  // namespace hpo::memory
