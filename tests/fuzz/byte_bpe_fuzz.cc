// Any bytes as merges, a text and its pair (separated by NULs), over a vocabulary of all bytes and
// of what the merges name: refused, or tokens that spell the text.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "tests/fuzz/check_encoding.h"
#include "worker/text/tokenizers/families/bpe_files.h"
#include "worker/text/tokenizers/parts/byte_alphabet.h"
#include "worker/text/tokenizers/parts/utf8.h"
#include "worker/text/tokenizers/pipeline/pipeline_tokenizer.h"
#include "worker/text/tokenizers/pipeline/special_tokens.h"

namespace {

hpo::text::TokenIds TokensOf(const hpo::text::NamedMerges& merges) {
  hpo::text::TokenIds ids;
  const auto add = [&](const std::string& token) {
    ids.emplace(token, static_cast<int32_t>(ids.size()));
  };
  for (int byte = 0; byte < 256; ++byte) {
    add(hpo::text::TokenOfBytes(std::string(1, static_cast<char>(byte))));
  }
  for (const auto& [left, right] : merges) {
    add(left);
    add(right);
    add(left + right);
  }
  return ids;
}

hpo::text::TokenizerParts PartsOf(const hpo::text::BpeVocabulary& vocabulary) {
  hpo::text::TokenizerParts parts;
  parts.splitter.emplace_back(hpo::text::SplitAtPattern{hpo::text::SplitPattern::kLlama3});
  parts.model = std::make_unique<hpo::text::BpeModel>(vocabulary);
  parts.single = {hpo::text::TextPiece()};
  parts.pair = {hpo::text::TextPiece(), hpo::text::PairPiece(1)};
  parts.vocab_size = static_cast<int64_t>(vocabulary.tokens.size());
  return parts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<absl::string_view> fields = absl::StrSplit(input, absl::MaxSplits('\0', 2));
  fields.resize(3);
  const auto merges = hpo::text::ParseMerges(fields[0], "merges.txt");
  if (!merges.ok()) return 0;
  const auto vocabulary = hpo::text::MakeBpeVocabulary(
      TokensOf(*merges), *merges, hpo::text::BpeVocabulary::Unit::kByte, "merges.txt");
  HPO_CHECK(vocabulary.ok());
  const hpo::text::PipelineTokenizer tokenizer(PartsOf(*vocabulary));
  hpo::CheckEncodings(tokenizer, fields[1], fields[2]);
  std::string spelled;
  bool unspelled = false;  // a merge of tokens that are no bytes
  for (const int32_t id : tokenizer.Pieces(fields[1])) {
    spelled += vocabulary->tokens[static_cast<size_t>(id)];
    unspelled |= vocabulary->tokens[static_cast<size_t>(id)].empty();
  }
  HPO_CHECK(unspelled || spelled == hpo::text::ReplaceInvalidUtf8(fields[1]));
  return 0;
}
