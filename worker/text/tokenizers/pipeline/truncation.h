// How many tokens of a text and its pair are kept.
#pragma once

#include <cstdint>

namespace hpo::text {

// Token counts, special tokens left out.
struct KeptTokens {
  int64_t text = 0;
  int64_t pair = 0;
  bool operator==(const KeptTokens&) const = default;
};

// Shortens the longer of the two until both are equally long, then both; of an odd room the longer
// one gets the odd token (the pair, where they were equally long). Without a pair: min(text, room).
// room >= 0.
// Source: Hugging Face tokenizers, strategy "longest_first".
KeptTokens TruncateLongestFirst(KeptTokens tokens, int64_t room);

}  // namespace hpo::text
