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

hpo::TokenIds TokensOf(const hpo::NamedMerges& merges) {
  hpo::TokenIds ids;
  const auto add = [&](const std::string& token) {
    ids.emplace(token, static_cast<int32_t>(ids.size()));
  };
  for (int byte = 0; byte < 256; ++byte) {
    add(hpo::TokenOfBytes(std::string(1, static_cast<char>(byte))));
  }
  for (const auto& [left, right] : merges) {
    add(left);
    add(right);
    add(left + right);
  }
  return ids;
}

hpo::TokenizerParts PartsOf(const hpo::BpeVocabulary& vocabulary) {
  hpo::TokenizerParts parts;
  parts.splitter.emplace_back(hpo::SplitAtPattern{hpo::SplitPattern::kLlama3});
  parts.model = std::make_unique<hpo::BpeModel>(vocabulary);
  parts.single = {hpo::TextPiece()};
  parts.pair = {hpo::TextPiece(), hpo::PairPiece(1)};
  parts.vocab_size = static_cast<int64_t>(vocabulary.tokens.size());
  return parts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<absl::string_view> fields = absl::StrSplit(input, absl::MaxSplits('\0', 2));
  fields.resize(3);
  const auto merges = hpo::ParseMerges(fields[0], "merges.txt");
  if (!merges.ok()) return 0;
  const auto vocabulary = hpo::MakeBpeVocabulary(TokensOf(*merges), *merges,
                                                 hpo::BpeVocabulary::Unit::kByte, "merges.txt");
  HPO_CHECK(vocabulary.ok());
  const hpo::PipelineTokenizer tokenizer(PartsOf(*vocabulary));
  hpo::CheckEncodings(tokenizer, fields[1], fields[2]);
  std::string spelled;
  bool unspelled = false;  // a merge of tokens that are no bytes
  for (const int32_t id : tokenizer.Pieces(fields[1])) {
    spelled += vocabulary->tokens[static_cast<size_t>(id)];
    unspelled |= vocabulary->tokens[static_cast<size_t>(id)].empty();
  }
  HPO_CHECK(unspelled || spelled == hpo::ReplaceInvalidUtf8(fields[1]));
  return 0;
}
