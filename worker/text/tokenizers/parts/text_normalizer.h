// What a tokenizer does to text before it is cut into words: a list of steps, each as Hugging
// Face's library of the same name does it.
// Characters are of utf8proc's Unicode version (15 with utf8proc 2.8).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/parts/charsmap.h"
#include "worker/text/tokenizers/parts/normalizer.h"
#include "worker/text/tokenizers/parts/sentencepiece_normalizer.h"

namespace hpo::text {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

struct Lowercase {};     // character by character, without regard to its place in the word
struct StripAccents {};  // drops marks (M*)
struct StripBlanks {     // white space at the ends
  bool left = true;
  bool right = true;
};
struct ReplaceLiteral {
  std::string from;  // not empty
  std::string to;
};
struct ReplaceBlanks {
  enum class What {
    kBlankRuns,       // " {2,}"
    kSpaceRuns,       // "\s+"
    kRunsAndControl,  // "\s{2,}|[\n\r\t]"
  };
  What what = What::kBlankRuns;
  std::string to;
};
struct Prepend {  // nothing before empty text
  std::string text;
};

struct BertText {  // BERT's normalisation alone
  BertNormalizer normalizer;
};

// A BertNormalizer itself gives words with a blank after each, for SplitAtBlanks.
using NormalizerStep =
    std::variant<NormalForm, Lowercase, StripAccents, StripBlanks, ReplaceLiteral, ReplaceBlanks,
                 Prepend, Charsmap, SentencePieceNormalizer, BertText, BertNormalizer>;

// All steps in order. `text`: well-formed UTF-8, and so is the result.
std::string Normalize(const std::vector<NormalizerStep>& steps, absl::string_view text);

}  // namespace hpo::text
