// What is asked of a text with aspects: each question with the text is a query, a row for the
// model. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "worker/text/data/aspect_file.h"

namespace hpo::text {

struct TextQuestion {
  // The class, valence and arousal of an aspect with its opinion; or which words are aspects, or
  // opinions.
  enum class Asks { kClass, kAspects, kOpinions };
  Asks asks = Asks::kClass;
  std::string words;
  size_t aspect = 0;  // of kClass: which of the row's
  // Of the others the answers, each once, in the order of the row. Not all of them need occur in
  // the text.
  std::vector<std::string> phrases = {};
  bool operator==(const TextQuestion&) const = default;
};

// The words by which a text is asked for all its aspects (kAspects) or opinions (kOpinions), or
// for the aspects of the opinion `of`, the opinions of the aspect `of`.
std::string SpanQuestion(TextQuestion::Asks asks, const std::string& of = "");

// The questions of a text, one or more. `with_spans`: first which words are aspects and which are
// opinions of each, then which are opinions and which are aspects of each, of names and opinions
// that differ once; then of every aspect its class and numbers (one query).
std::vector<TextQuestion> QuestionsOf(const AspectRow& row, bool with_spans);

}  // namespace hpo::text
