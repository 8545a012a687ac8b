// Forward of a catalogued model as Hugging Face's implementation runs it on a CUDA device, written
// for a StepTracer: what a training step of it allocates and frees. Families: BERT, RoBERTa (XLM-R,
// CamemBERT), ELECTRA, DistilBERT and DeBERTa v2 and v3 under a classification head, GPT-2, Llama
// and Qwen2 under a language model's or a classification head.
//
// Source: the modules of transformers 5.23 (scaled dot product attention; DeBERTa's own, written
// out) on torch 2.11. tests/memory/offline/traces/model_trace_test.cc compares every allocation
// and free with a FakeTensor run of those modules; temporaries inside CUDA's kernels are not seen
// by it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/models/model_parameters.h"
#include "memory/trace/lora.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

struct ModelBatch {
  int64_t rows = 0;
  int64_t tokens = 0;  // of every row, padding included
};

// How the model is trained.
struct ModelTechniques {
  // Low-rank adapters are trained, in float32, as peft makes them, and a classification head's
  // copy; everything else is frozen.
  std::optional<LoraOptions> lora;
  // model.gradient_checkpointing_enable(), whose default is use_reentrant=False: every layer runs
  // again in backward.
  bool checkpointing = false;
};

// Makes the parameters when created; each Forward is one pass. Holds a reference to its device.
class ModelTrace {
 public:
  virtual ~ModelTrace() = default;
  // From the batch's tensors, ids and mask of rows x tokens int64 each, to the loss.
  virtual TracedTensor Loss(const ModelBatch& batch, const TracedStorage& ids) = 0;
};

// Whether MakeModelTrace has the family.
//   Unimplemented  it has not, or not the activation function; names it and those that it has
absl::Status CheckHasTrace(const ModelShape& shape);
// Whether it takes these.
//   as MakeModelTrace
absl::Status CheckHasTrace(const ModelShape& shape, const TaskHead& head,
                           const ModelTechniques& techniques);

//   Unimplemented    a family or activation without a trace here, adapters on embeddings
//   InvalidArgument  see ParameterTensors, LoraTensors; another head than the family has here
absl::StatusOr<std::unique_ptr<ModelTrace>> MakeModelTrace(TracedDevice& device,
                                                           const ModelShape& shape,
                                                           const TaskHead& head,
                                                           const ModelTechniques& techniques = {});

}  // namespace hpo::memory
