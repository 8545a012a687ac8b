// What training on a data file takes on one card, and what would save how much of it: the diagnosis
// of padded multi-aspect batches. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/memory/dataset_profile.h"
#include "memory/plan/config_advice.h"

namespace hpo::cli {

struct DiagnosisOptions {
  std::string model;  // as the deciders know it
  int64_t batch_size = 1;
  int64_t grad_accum = 1;
  int64_t passes = 1;      // forward passes over a batch whose losses go backward together
  int64_t max_length = 0;  // tokens of every input
  // Items (or tokens) above which a sample would be dropped, not below the smallest; 0: none.
  int64_t keep_up_to = 0;
};

// One way to run the data. `verdict` is of its largest batch.
struct Treatment {
  std::string name;
  std::string note;
  int64_t samples = 0;    // that remain
  int64_t max_items = 0;  // of the largest batch; every sample of it is padded to that
  int64_t rows = 0;       // model inputs held at once: batch size x items x passes, or a chunk
  double mean_rows = 0;   // over all batches
  int64_t length = 0;
  memory::ConfigVerdict verdict;
};

struct DatasetDiagnosis {
  Treatment as_it_is;
  std::vector<Treatment> savings;
  double useful_share = 0.0;  // of the padded inputs (tokens, where a sample is one input)
};

// `strict` and `plan` decide by those policies, on a device of `capacity`. All passes' activations
// are counted as one pass over all rows, which is what they hold before the shared backward (a
// few per cent high: one pass's temporaries are counted for all).
//   as JudgeConfig
absl::StatusOr<DatasetDiagnosis> DiagnoseDataset(const DatasetProfile& profile,
                                                 const DiagnosisOptions& options,
                                                 const memory::FitDecider& strict,
                                                 const memory::FitDecider& plan, Bytes capacity);

}  // namespace hpo::cli
