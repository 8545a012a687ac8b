// A SentencePiece model as what this library cuts text with: a normalizer step and a subword model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/text/tokenizers/families/sentencepiece_model.h"
#include "worker/text/tokenizers/parts/sentencepiece_normalizer.h"
#include "worker/text/tokenizers/parts/subword_model.h"

namespace hpo::text {

// The model's normalizer; `origin` is what errors begin with.
//   InvalidArgument  its precompiled_charsmap is broken
absl::StatusOr<SentencePieceNormalizer> NormalizerOf(const SentencePieceModel& model,
                                                     const std::string& origin);

// Its pieces. `id_of` gives the id that a family uses for a piece of the file.
std::unique_ptr<const SubwordModel> SubwordsOf(const SentencePieceModel& model,
                                               const std::function<int32_t(int32_t)>& id_of);

}  // namespace hpo::text
