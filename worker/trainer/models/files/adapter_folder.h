// Adapters as Hugging Face's peft keeps them: what is trained, without the model beside which it
// is. Source of the format: peft 0.21, PeftModel.save_pretrained.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/models/model_spec.h"
#include "memory/trace/lora.h"
#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

struct AdapterFolderContents {
  memory::LoraOptions options;
  ModelShape shape;                   // of the model that the adapters are on
  std::string model_name;             // what peft loads it by
  std::string task_type = "SEQ_CLS";  // peft's word: "CAUSAL_LM" of a language model
};

// Writes adapter_config.json and adapter_model.safetensors (the adapters and the head) of `model`,
// which AddAdapters was called for, into `folder`, which it makes.
//   NotFound, PermissionDenied, ResourceExhausted, ...  see FileError (common/files/read_file.h)
absl::Status WriteAdapterFolder(const torch::nn::Module& model,
                                const AdapterFolderContents& contents, const std::string& folder);

}  // namespace hpo::trainer
