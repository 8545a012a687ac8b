// Normalizers and pre-tokenizers of a tokenizer.json. `where` is the member's path with
// which errors begin; codes as of ParseTokenizerJson.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "worker/text/tokenizers/pipeline/pipeline_tokenizer.h"

namespace hpo::text {

// Appends the steps of member "normalizer"; null adds none.
absl::Status ReadNormalizer(const nlohmann::json& json, const std::string& where,
                            std::vector<NormalizerStep>& steps);

struct PreTokenizer {
  std::vector<SplitStep> steps;
  bool byte_level = false;  // words go to the model as bytes
  bool bert = false;        // a single BertPreTokenizer
};
// Member "pre_tokenizer", or null.
absl::StatusOr<PreTokenizer> ReadPreTokenizer(const nlohmann::json& json, const std::string& where);

}  // namespace hpo::text
