#include "worker/text/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "worker/text/wordpiece.h"

namespace hpo {
namespace {

enum class TokenizerFamily { kWordPiece, kByteBpe, kUnigram, kUnknown };

TokenizerFamily FamilyOf(absl::string_view model_type) {
  if (model_type == "bert") return TokenizerFamily::kWordPiece;
  if (model_type == "roberta") return TokenizerFamily::kByteBpe;
  if (model_type == "deberta-v2" || model_type == "xlm-roberta") return TokenizerFamily::kUnigram;
  return TokenizerFamily::kUnknown;
}

absl::Status NoTokenizer(const std::string& folder, const ModelShape& shape,
                         absl::string_view kind) {
  return absl::UnimplementedError(absl::StrCat(
      folder,
      "/config.json: model_type: expected bert (the one family with a tokenizer here), got '",
      shape.family, "'", kind));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const std::string& folder,
                                                         const ModelShape& shape) {
  switch (FamilyOf(shape.family)) {
    case TokenizerFamily::kWordPiece:
      return LoadWordPiece(folder, shape.vocab_size);
    case TokenizerFamily::kByteBpe:
      return NoTokenizer(folder, shape, " (byte-level BPE)");
    case TokenizerFamily::kUnigram:
      return NoTokenizer(folder, shape, " (SentencePiece unigram)");
    case TokenizerFamily::kUnknown:
      return NoTokenizer(folder, shape, "");
  }
  return NoTokenizer(folder, shape, "");
}

}  // namespace hpo
