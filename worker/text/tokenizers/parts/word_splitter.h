// Cutting normalised text into words: a list of steps, each cutting what the one before it gave,
// as Hugging Face's pre-tokenizers of the same name do it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/parts/split_pattern.h"

namespace hpo::text {

// What becomes of the places at which text is cut.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct SplitAtPattern {  // Split by a regular expression, ByteLevel's own
  SplitPattern pattern = SplitPattern::kGpt2;
};
struct SplitAtLiteral {  // Split by a string
  std::string literal;   // not empty
  SplitBehavior behavior = SplitBehavior::kIsolated;
};
struct SplitAtClass {
  enum class What {
    kWhiteSpace,   // WhitespaceSplit, when removed
    kPunctuation,  // Punctuation: BERT's
    kDigits,       // Digits: isolated or contiguous
  };
  What what = What::kWhiteSpace;
  SplitBehavior behavior = SplitBehavior::kRemoved;
};
struct SplitWordCharacters {};  // Whitespace: \w+|[^\w\s]+
struct SplitAtBlanks {};        // for BertNormalizer, which ends every word with a blank
struct PrefixBlank {};          // ByteLevel's add_prefix_space: unless the text begins with one
struct Metaspace {
  enum class Prefix { kAlways, kFirst, kNever };
  std::string replacement;  // of blanks; not empty
  Prefix prefix = Prefix::kAlways;
  bool split = true;  // before each replacement
};

using SplitStep = std::variant<SplitAtPattern, SplitAtLiteral, SplitAtClass, SplitWordCharacters,
                               SplitAtBlanks, PrefixBlank, Metaspace>;

// Takes a word, which lives only during the call.
using WordSink = absl::FunctionRef<void(absl::string_view)>;

// Gives the words of `text`, none of them empty, to `sink`. No step: all of it is one word.
// `text`: well-formed UTF-8. `at_start`: whether it is the start of the whole input.
void SplitWords(const std::vector<SplitStep>& steps, absl::string_view text, bool at_start,
                WordSink sink);

}  // namespace hpo::text
