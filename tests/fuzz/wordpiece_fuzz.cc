// Any bytes as a vocabulary, a tokenizer configuration, a text and its pair (separated by NULs):
// refused, or an input within its length whose ids the vocabulary has, whatever the truncation.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/fuzz/check_encoding.h"
#include "worker/text/tokenizers/families/wordpiece.h"

namespace {

constexpr absl::string_view kSpecialTokens = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<absl::string_view> parts = absl::StrSplit(input, absl::MaxSplits('\0', 3));
  parts.resize(4);
  const std::string content = absl::StrCat(kSpecialTokens, parts[0]);
  const int64_t rows = 4 + std::count(parts[0].begin(), parts[0].end(), '\n') +
                       (parts[0].empty() || parts[0].back() == '\n' ? 0 : 1);
  const auto vocabulary = hpo::text::ParseVocabulary(content, "vocab.txt", rows);
  const auto config = hpo::text::ParseTokenizerConfig(parts[1], "tokenizer_config.json");
  if (!vocabulary.ok()) return 0;
  const hpo::text::BertNormalization normalization =
      config.ok() ? hpo::text::BertNormalizationOf(*config) : hpo::text::BertNormalization{};
  hpo::CheckEncodings(*hpo::text::MakeBertTokenizer(*vocabulary, normalization), parts[2],
                      parts[3]);
  return 0;
}
