#include "worker/text/tokenizers/pipeline/truncation.h"

#include <algorithm>

namespace hpo::text {

KeptTokens TruncateLongestFirst(KeptTokens tokens, int64_t room) {
  // Compared this way round, so that counts near the largest integer do not overflow.
  if (tokens.pair <= room && tokens.text <= room - tokens.pair) return tokens;
  int64_t& shorter = tokens.text <= tokens.pair ? tokens.text : tokens.pair;
  int64_t& longer = tokens.text <= tokens.pair ? tokens.pair : tokens.text;
  shorter = std::min(shorter, room / 2);
  longer = room - shorter;
  return tokens;
}

}  // namespace hpo::text
