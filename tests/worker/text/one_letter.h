// A tokenizer of words of the letter a, a token each letter.
#pragma once

#include <memory>

#include "worker/text/tokenizers/families/wordpiece.h"

namespace hpo::text {

inline const Tokenizer& OneLetter() {
  static const auto* const tokenizer = new std::unique_ptr<PipelineTokenizer>(MakeBertTokenizer(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##a"}, .digest = "letters"}, {}));
  return **tokenizer;
}

}  // namespace hpo::text
