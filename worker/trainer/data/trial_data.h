// What one trial trains on, before any tensor exists: the model's shape and vocabulary, and the
// data as token ids, for every task. Free of torch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_spec.h"
#include "common/models/task_kind.h"
#include "common/protocol/trainer_protocol.h"
#include "memory/need/memory_estimate.h"
#include "worker/text/batching/encoded_dataset.h"
#include "worker/text/batching/query_set.h"
#include "worker/text/batching/token_cache.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"
#include "worker/trainer/data/training_options.h"

namespace hpo::trainer {

struct ModelFolder {
  std::string path;
  std::string config_json;  // as it is in the folder
  ModelShape shape;         // with the trial's dropout
  std::unique_ptr<text::Tokenizer> tokenizer;
};

// Rows of a file that are longer than the model's positions.
struct TruncatedRows {
  std::string path;
  int64_t truncated = 0;
  int64_t rows = 0;  // of the file
};

struct TextData {
  TaskKind task = TaskKind::kTextClassification;
  std::vector<std::string> labels;  // a regression's fields; none of language modelling
  // Of one token type where the model knows no second. Of multi-query: what its texts are to a
  // batcher.
  text::EncodedDataset train;
  text::EncodedDataset validation;
  std::optional<text::QuerySet> train_queries;  // of multi-query alone
  std::optional<text::QuerySet> validation_queries;
  std::vector<text::AspectRow> validation_texts;  // where they ask for spans: what they ask of
  text::QueryLayout query_layout;
  int64_t max_length = 0;  // tok.max_length, or the model's positions when those are fewer;
  std::vector<TruncatedRows> truncated;  // in that case, of both files
  bool one_token_type = false;
  std::vector<std::string> warnings;  // about both files: sentences that name line and column
};

// Reads config.json and the vocabulary of job.model_path.
//   NotFound         the folder or a file of it is missing; names it
//   InvalidArgument  a broken file; names it
//   Unimplemented    a family that this trainer lacks; names config.json and the families it has
absl::StatusOr<ModelFolder> OpenModelFolder(const TrainerJob& job, const TrainingOptions& options);

// Reads both data files as the job's task, which is one of ours, wants them, and tokenizes them or
// takes their tokens from `tokens`.
//   NotFound, Unavailable, InvalidArgument  see worker/text/data/dataset.h and EncodeDataset;
//                                           language modelling: a text of a single token
absl::StatusOr<TextData> LoadTextData(const TrainerJob& job, const TrainingOptions& options,
                                      const ModelFolder& model,
                                      const text::TokenCache& tokens = {});

// What EstimateMemory needs to know of the trial, with the data's true lengths. `device`: as the
// process sees it (TrialDevice).
memory::EstimateInput EstimateInputOf(const ModelFolder& model, const TextData& data,
                                      const TrainingOptions& options, const DeviceProfile& device);

}  // namespace hpo::trainer
