// A made-up trial of any shape: its files, its job, and what memory's model is told of it. Words
// are drawn from the vocabulary, one token each, so that every row has the length asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/trainer_protocol.h"
#include "memory/need/memory_estimate.h"
#include "memory/trace/trial_passes.h"
#include "nlohmann/json.hpp"

namespace hpo::trainer {

struct SyntheticTrial {
  std::string family = "bert";  // config.json's model_type; its keys, and word pieces
  int64_t hidden = 64;
  int64_t intermediate = 256;
  int64_t heads = 4;
  int64_t layers = 2;
  int64_t vocabulary = 1000;
  int64_t positions = 512;
  int64_t token_types = 2;
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  std::optional<double> head_dropout;  // else the hidden dropout
  std::vector<int64_t> head_sizes;
  int64_t labels = 2;  // single-label: at most as many as training rows
  bool multi_label = false;
  std::string task = "text-classification";  // of a regression `labels` is the numbers of a row
  int64_t batch_size = 8;
  int64_t grad_accum = 1;
  int64_t micro_batch = 8;
  int64_t eval_batch_multiplier = 1;
  int64_t max_length = 128;
  // Tokens of each row, the two special ones included; 3 or more, before truncation.
  std::vector<int64_t> train_lengths = {64, 64, 64, 64, 64, 64, 64, 64};
  std::vector<int64_t> validation_lengths = {64, 64, 64, 64};
  int64_t epochs = 1;
  uint64_t seed = 1;
  ParamMap params;  // more of them, or others than those above say
  // Added to config.json.
  nlohmann::json more_config = nlohmann::json::object();

  MemoryPlan Plan() const {
    return {.effective_batch = batch_size * grad_accum, .micro_batch = micro_batch};
  }
};

// One line for people.
std::string Describe(const SyntheticTrial& trial);

// The trial's files in a folder of its own, removed with it.
class SyntheticFolder {
 public:
  // Writes below `parent`, which exists.
  SyntheticFolder(const SyntheticTrial& trial, const std::string& parent);
  ~SyntheticFolder();
  SyntheticFolder(const SyntheticFolder&) = delete;
  SyntheticFolder& operator=(const SyntheticFolder&) = delete;

  // Random weights, policy plan with the trial's plan, no admission, no limit; the best weights
  // are written beside the data.
  TrainerJob Job() const;

 private:
  SyntheticTrial trial_;
  std::string folder_;
};

// What memory's model is told of a job, from the files that the trainer will read.
struct JobDescription {
  memory::EstimateInput input;
  MemoryPlan plan;  // that it starts with
  memory::TrialPasses passes;
};

//   NotFound, Unavailable, InvalidArgument, Unimplemented  as the trainer says it
absl::StatusOr<JobDescription> DescribeJob(const TrainerJob& job, int64_t threads);

}  // namespace hpo::trainer
