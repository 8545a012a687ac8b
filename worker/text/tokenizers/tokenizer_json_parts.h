// The members of a tokenizer.json, each read on its own. `where` is the member's path with which
// errors begin; codes as of ParseTokenizerJson.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "worker/text/tokenizers/bpe_files.h"
#include "worker/text/tokenizers/pipeline_tokenizer.h"

namespace hpo {

// "expected one known here, got 'X'", with code Unimplemented: a part that this library lacks.
absl::Status UnknownPart(const std::string& where, absl::string_view what, absl::string_view got);

// Member `key` of an object; null where it is absent.
const nlohmann::json& MemberOrNull(const nlohmann::json& json, const char* key);

// The `type` of a part.
absl::StatusOr<std::string> PartType(const nlohmann::json& part, const std::string& where);

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

}  // namespace hpo
