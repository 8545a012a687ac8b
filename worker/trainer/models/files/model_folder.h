// Writes a trained model as a folder that Hugging Face's transformers opens unchanged (when the
// head has no hidden layers), and this trainer again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/files/adapter_folder.h"

namespace hpo::trainer {

// What config.json says of a model's task, in transformers' words.
struct ModelRole {
  std::string architecture;  // its class's name after the family's: "ForSequenceClassification"
  std::string problem_type;  // empty: none
};

struct ModelFolderContents {
  std::string source;       // the folder the model came from: vocabulary and its settings
  std::string config_json;  // its config.json, of a known family
  ModelRole role;
  std::vector<std::string> labels;  // by index; none: it has no classifier
  std::vector<int64_t> head_sizes;  // hidden layers of the head
  std::optional<AdapterFolderContents> adapter = std::nullopt;  // of a model that has adapters
  int64_t pad_id = 0;  // what follows a row's last token; a classifier of that token is told
  std::string quadruplets = {};  // what the model says of the validation data; empty: no such file
};

// Makes `folder` hold config.json (with labels and architecture), model.safetensors and the
// tokenizer's files, and quadruplets.jsonl; of a model with adapters, these merged into the
// weights, and the folder "adapter" as peft writes it. Written beside it under a temporary name,
// flushed, then put in place of what was there: a reader sees the old folder or the new one.
//   ResourceExhausted, Unavailable, ...  the disk; see FileError (common/files/read_file.h)
absl::Status WriteModelFolder(torch::nn::Module& model, const ModelFolderContents& contents,
                              const std::string& folder);

}  // namespace hpo::trainer
