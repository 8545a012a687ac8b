// What holds for every tokenizer, whatever the text.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo {

// Encodes `text` alone and with `pair`, at several lengths: as long as asked for or as it is, with
// ids that the vocabulary has.
inline void CheckEncodings(const text::Tokenizer& tokenizer, absl::string_view text,
                           absl::string_view pair) {
  for (const bool has_pair : {false, true}) {
    const std::optional<absl::string_view> other =
        has_pair ? std::optional<absl::string_view>(pair) : std::nullopt;
    const auto whole_length =
        static_cast<int64_t>(tokenizer.Encode(text, other, text::kNoTruncation).ids.size());
    const int64_t shortest = tokenizer.NumSpecialTokens(has_pair);
    HPO_CHECK(whole_length >= shortest);
    for (const int64_t more : {0, 1, 4, 61}) {
      const text::Encoding encoding = tokenizer.Encode(text, other, shortest + more);
      HPO_CHECK(static_cast<int64_t>(encoding.ids.size()) ==
                std::min(shortest + more, whole_length));
      HPO_CHECK(encoding.ids.size() == encoding.type_ids.size());
      for (const int32_t id : encoding.ids) HPO_CHECK(id >= 0 && id < tokenizer.vocab_size());
    }
  }
}

}  // namespace hpo
