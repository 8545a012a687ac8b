// Any bytes as a vocabulary, a tokenizer configuration, a text and its pair (separated by NULs):
// refused, or an input within its length whose ids the vocabulary has, whatever the truncation.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/status.h"
#include "worker/text/wordpiece.h"

namespace {

constexpr absl::string_view kSpecialTokens = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";

void CheckEncoding(const hpo::Tokenizer& tokenizer, absl::string_view text,
                   absl::string_view pair) {
  const hpo::Encoding whole = tokenizer.Encode(text, pair, hpo::kNoTruncation);
  const auto whole_length = static_cast<int64_t>(whole.ids.size());
  for (const int64_t max_length : {3, 4, 7, 64}) {
    const hpo::Encoding encoding = tokenizer.Encode(text, pair, max_length);
    HPO_CHECK(static_cast<int64_t>(encoding.ids.size()) == std::min(max_length, whole_length));
    HPO_CHECK(encoding.ids.size() == encoding.type_ids.size());
    HPO_CHECK(encoding.ids.front() == 2 && encoding.ids.back() == 3);
    HPO_CHECK(std::is_sorted(encoding.type_ids.begin(), encoding.type_ids.end()));
    for (const int32_t id : encoding.ids) HPO_CHECK(id >= 0 && id < tokenizer.vocab_size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<absl::string_view> parts = absl::StrSplit(input, absl::MaxSplits('\0', 3));
  parts.resize(4);
  const std::string content = absl::StrCat(kSpecialTokens, parts[0]);
  const int64_t rows = 4 + std::count(parts[0].begin(), parts[0].end(), '\n') +
                       (parts[0].empty() || parts[0].back() == '\n' ? 0 : 1);
  const auto vocabulary = hpo::ParseVocabulary(content, "vocab.txt", rows);
  const auto config = hpo::ParseTokenizerConfig(parts[1], "tokenizer_config.json");
  if (!vocabulary.ok()) return 0;
  const hpo::BertNormalization normalization =
      config.ok() ? hpo::BertNormalizationOf(*config) : hpo::BertNormalization{};
  CheckEncoding(*hpo::MakeBertTokenizer(*vocabulary, normalization), parts[2], parts[3]);
  return 0;
}
