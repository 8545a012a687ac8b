// BERT's text normalisation and word splitting: any bytes in, words out.
//
// In this order, per character: control, format and private-use characters, U+FFFD and bytes that
// are not UTF-8 are dropped; white space ends a word; CJK ideographs become words of their own;
// accents are stripped (canonical decomposition, nonspacing marks dropped); letters are lowered;
// punctuation becomes words of its own. No other Unicode normalisation.
// Source: Devlin et al. 2018, as in Hugging Face's BertNormalizer and BertPreTokenizer; character
// classes are utf8proc's Unicode version (newer than the Unicode 8 tables that Hugging Face's Rust
// code keeps, so a few hundred characters of later, rare scripts are classed as they are today).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hpo::text {

struct BertNormalization {
  bool lowercase = true;
  bool strip_accents = true;
  bool split_cjk = true;
  bool operator==(const BertNormalization&) const = default;
};

// Immutable; safe to share between threads.
class BertNormalizer {
 public:
  explicit BertNormalizer(BertNormalization options);

  // The words of `text`, each followed by one blank. No word is empty or holds white space; every
  // word is valid UTF-8. O(bytes), and one allocation where the words are no longer than the text.
  std::string Words(absl::string_view text) const;

  // `text` normalised in the same way but not cut: white space becomes blanks, punctuation stays
  // where it is, CJK ideographs get a blank on either side.
  std::string Text(absl::string_view text) const;

 private:
  enum class AsciiClass : uint8_t { kLetter, kBlank, kAlone, kDropped };
  class Writer;

  void Write(absl::string_view text, Writer& writer) const;

  BertNormalization options_;
  std::array<AsciiClass, 128> ascii_class_;
  std::array<char, 128> ascii_written_;
};

}  // namespace hpo::text
