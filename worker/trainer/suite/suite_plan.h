// What the memory suite trains: synthetic configurations over the sizes that memory depends on.
// Pure; free of torch.
#pragma once

#include <string>
#include <vector>

#include "memory/need/memory_estimate.h"
#include "worker/text/batching/encoded_dataset.h"

namespace hpo::trainer {

struct SuitePoint {
  std::string name;  // "h768 l12 t128 m16 e32 dropout"
  ModelShape model;
  memory::TrainingConfig config;
  MemoryPlan plan;
  int64_t tokens = 16;  // of every row
  bool operator==(const SuitePoint&) const = default;
};

// At least 60 points, those that need little first: width and depth, tokens, micro-batch; every
// other one with accumulation over two parts, every third without dropout. `device` "cpu": sizes
// that a processor trains in milliseconds; "cuda": up to a bert-large of 512 tokens.
std::vector<SuitePoint> SuitePoints(const std::string& device);

// `steps` effective batches of `point`, made-up tokens and two labels.
text::EncodedDataset SuiteRows(const SuitePoint& point, int64_t steps);

// What EstimateMemory is a function of, for `steps` effective batches on `device`.
memory::EstimateInput SuiteInput(const SuitePoint& point, int64_t steps,
                                 const DeviceProfile& device);

}  // namespace hpo::trainer
