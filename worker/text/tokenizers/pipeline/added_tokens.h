// Tokens that stand for themselves wherever they are written out in the text, such as <s> or
// <|im_start|>: found before anything else is done to the text, or after it is normalised.
// Source of the rules: Hugging Face's AddedToken.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/parts/vocab_trie.h"

namespace hpo::text {

struct AddedToken {
  std::string content;  // not empty
  int32_t id = 0;
  bool single_word = false;  // not where a word character stands beside it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and after it
  bool normalized = false;   // looked for in normalised text, and written in normalised form there
  bool special = false;      // adds nothing here: special tokens are looked for like others
  bool operator==(const AddedToken&) const = default;
};

// Immutable; safe to share between threads.
class AddedTokenFinder {
 public:
  // Of tokens with the same content the last counts.
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  // Cuts `text` at the tokens in it, of those that begin at one place the longest: on_text(part,
  // at_start) for what lies between, never empty, and on_token(id), in the order of the text.
  // `at_start`: whether text is the start of the whole input.
  void Cut(absl::string_view text, bool at_start,
           absl::FunctionRef<void(absl::string_view, bool)> on_text,
           absl::FunctionRef<void(int32_t)> on_token) const;

 private:
  const AddedToken* TokenAt(absl::string_view text, size_t begin) const;

  std::vector<AddedToken> tokens_;  // by index in the trie
  VocabTrie trie_;
  std::array<bool, 256> begins_token_;
};

}  // namespace hpo::text
