// Any bytes as a SentencePiece model, after two bytes that say how long the text behind it is:
// refused, or ids that the model has. Seeds: tests/golden/tokenizers/*/*.model.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "tests/fuzz/check_encoding.h"
#include "worker/text/tokenizers/families/sentencepiece_subwords.h"
#include "worker/text/tokenizers/pipeline/pipeline_tokenizer.h"
#include "worker/text/tokenizers/pipeline/special_tokens.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t text_size = std::min(size - 2, size_t{data[0]} << 8 | data[1]);
  absl::string_view model_bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const absl::string_view text = model_bytes.substr(model_bytes.size() - text_size);
  model_bytes.remove_suffix(text_size);
  const auto model = hpo::text::ParseSentencePieceModel(model_bytes, "spm.model");
  if (!model.ok()) return 0;
  auto normalizer = hpo::text::NormalizerOf(*model, "spm.model");
  if (!normalizer.ok()) return 0;
  hpo::text::TokenizerParts parts;
  parts.normalizer.emplace_back(*std::move(normalizer));
  parts.model = hpo::text::SubwordsOf(*model, [](int32_t piece) { return piece; });
  parts.single = {hpo::text::TextPiece()};
  parts.pair = {hpo::text::TextPiece(), hpo::text::PairPiece(1)};
  parts.vocab_size = static_cast<int64_t>(model->pieces.size());
  const hpo::text::PipelineTokenizer tokenizer(std::move(parts));
  hpo::CheckEncodings(tokenizer, text, text.substr(text.size() / 2));
  return 0;
}
