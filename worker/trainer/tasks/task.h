// What a trial trains: a model under the head of its task, the loss of a batch and the metrics of
// the validation data. Each task is a file of its own in this folder; run_trial and the training
// loop know none of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/study/trial.h"
#include "memory/trace/execution.h"
#include "worker/text/batching/batcher.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/data/batch_tensors.h"
#include "worker/trainer/data/trial_data.h"

namespace hpo::trainer {

// What a task works on. All of it outlives the task.
struct TaskParts {
  const TextData& data;
  const text::Tokenizer* tokenizer = nullptr;  // the model's, of a task that asks for spans
  int64_t max_positions = 0;
  bool unpadded = false;  // memory.unpadded
  torch::Device device = torch::kCPU;

  // Rows of `set` as they run together.
  text::TokenBatch BatchOf(const text::EncodedDataset& set, std::span<const int64_t> rows) const {
    return unpadded ? text::PackBatch(set, rows) : text::PadBatch(set, rows, max_positions);
  }
};

// Owned by its trial, used from one thread but for TokensOf. Methods throw what torch throws.
class Task {
 public:
  virtual ~Task() = default;

  // The model: parameters are registered under the names of their files.
  virtual torch::nn::Module& module() = 0;
  // How it runs from now on: layers of a recomputed segment, precision.
  virtual void SetExecution(const memory::Execution& execution) = 0;

  // What the loss of an effective batch is a mean over, added up over its rows. Positive.
  virtual double WeightOf(std::span<const int64_t> rows) const = 0;
  // What of these rows, a part of an effective batch, runs at a time, in order: as TokensOf takes
  // it.
  virtual std::vector<text::BatchRows> PiecesOf(std::span<const int64_t> rows) const = 0;
  // A piece of the training data: its rows with what they are to say. Makes no tensor; any thread,
  // whatever the others do.
  virtual text::TokenBatch TokensOf(std::span<const int64_t> rows) const = 0;
  // It on the device.
  virtual DeviceBatch ToTensors(const text::TokenBatch& tokens) const = 0;
  // The loss of a piece, a float32 scalar. A sum, never a mean: those of all pieces add up, and
  // over the batch's WeightOf are its loss.
  virtual torch::Tensor SumOfLosses(const DeviceBatch& batch) = 0;

  // Metrics over `batches` of the validation data, without dropout and without gradients: all that
  // MetricsOf(kind) names. All of EvaluationBatches give the data set's; the first of them, which
  // has the longest rows, needs the most memory. Leaves the model in training mode.
  virtual Metrics Evaluate(std::span<const text::BatchRows> batches) = 0;

  // The quadruplets that the last Evaluate found, as lines of a file; empty: the task finds none.
  virtual std::string QuadrupletLines() const { return {}; }
};

}  // namespace hpo::trainer
