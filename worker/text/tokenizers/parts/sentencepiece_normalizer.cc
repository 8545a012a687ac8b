#include "worker/text/tokenizers/parts/sentencepiece_normalizer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"

namespace hpo::text {

// Writes parts one after another, blanks as the options want them.
class SentencePieceNormalizer::Writer {
 public:
  Writer(const SentencePieceNormalization& options, size_t bytes)
      : joins_blanks_(options.remove_extra_whitespaces),
        blank_(options.escape_whitespaces ? kBlankSymbol : absl::string_view(" ")),
        after_blank_(joins_blanks_) {
    text_.reserve(bytes + bytes / 2 + 2 * blank_.size());
  }

  void WriteBlank() { text_.append(blank_.data(), blank_.size()); }

  // Characters of the text that no rule touches, each a part of its own.
  void WriteAscii(absl::string_view characters) {
    for (const char c : characters) {
      if (c != ' ') {
        text_.push_back(c);
      } else if (!after_blank_) {
        WriteBlank();
      }
      after_blank_ = joins_blanks_ && c == ' ';
    }
  }

  void Write(absl::string_view part) {
    while (after_blank_ && absl::StartsWith(part, " ")) part.remove_prefix(1);
    if (part.empty()) return;
    for (const char c : part) {
      if (c == ' ') {
        WriteBlank();
      } else {
        text_.push_back(c);
      }
    }
    after_blank_ = joins_blanks_ && part.back() == ' ';
  }

  std::string Finish() && {
    while (joins_blanks_ && absl::EndsWith(text_, blank_)) {
      text_.resize(text_.size() - blank_.size());
    }
    return std::move(text_);
  }

 private:
  bool joins_blanks_;
  absl::string_view blank_;
  bool after_blank_;
  std::string text_;
};

SentencePieceNormalizer::SentencePieceNormalizer(SentencePieceNormalization options)
    : options_(std::move(options)) {
  if (!options_.user_defined.empty()) user_defined_.emplace(options_.user_defined);
}

SentencePieceNormalizer::Part SentencePieceNormalizer::FirstPart(absl::string_view text) const {
  if (user_defined_.has_value()) {
    const VocabTrie::Match match = user_defined_->LongestMatch(VocabTrie::kRoot, text);
    if (match.id >= 0) return {match.length, text.substr(0, match.length)};
  }
  if (const Charsmap::Rewrite rule = options_.charsmap.Longest(text); rule.size > 0) {
    return {rule.size, rule.text};
  }
  const size_t character = CharacterSize(text);
  return {character, text.substr(0, character)};
}

std::string SentencePieceNormalizer::Normalize(absl::string_view text) const {
  if (options_.remove_extra_whitespaces) {
    while (!text.empty()) {
      const Part part = FirstPart(text);
      if (part.text != " ") break;
      text.remove_prefix(part.size);
    }
  }
  if (text.empty()) return "";
  Writer writer(options_, text.size());
  if (options_.add_dummy_prefix && !options_.blank_as_suffix) writer.WriteBlank();
  while (!text.empty()) {
    const size_t ascii = user_defined_.has_value() ? 0 : options_.charsmap.UntouchedAscii(text);
    if (ascii > 0) {
      writer.WriteAscii(text.substr(0, ascii));
      text.remove_prefix(ascii);
      continue;
    }
    const Part part = FirstPart(text);
    writer.Write(part.text);
    text.remove_prefix(part.size);
  }
  std::string normalized = std::move(writer).Finish();
  if (options_.add_dummy_prefix && options_.blank_as_suffix) {
    absl::StrAppend(&normalized,
                    options_.escape_whitespaces ? kBlankSymbol : absl::string_view(" "));
  }
  return normalized;
}

}  // namespace hpo::text
