// Models and post-processors of a tokenizer.json. `where` is the member's path with
// which errors begin; codes as of ParseTokenizerJson.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "worker/text/tokenizers/families/bpe_files.h"
#include "worker/text/tokenizers/pipeline/pipeline_tokenizer.h"

namespace hpo::text {

struct ModelPart {
  std::unique_ptr<const SubwordModel> model;
  TokenIds ids;
};
// Member "model". `byte_level`: the vocabulary writes bytes as GPT-2's does; BPE only.
absl::StatusOr<ModelPart> ReadModel(const nlohmann::json& json, bool byte_level,
                                    const std::string& where);

struct Templates {
  InputTemplate single;
  InputTemplate pair;
};
// Member "post_processor", or null: then nothing is added, and a pair has type 1.
absl::StatusOr<Templates> ReadPostProcessor(const nlohmann::json& json, const std::string& where);

}  // namespace hpo::text
