// Quadruplets of aspect, category, opinion and numbers, put together from a model's answers about a
// text. Pure; any thread.
//
// The rounds are those of bidirectional machine reading comprehension (Chen et al. 2021, AAAI):
// forward, the aspects of the text, then the opinions of each; backward, its opinions, then the
// aspects of each; last the class, valence and arousal of each pair. Theirs is too which pairs
// count: those that both directions have, and of the others those whose probability is
// kSurePair or more. That of a pair is P(aspect) P(opinion | aspect) forward, P(opinion)
// P(aspect | opinion) backward.
//
// What is not theirs: an aspect that no direction has a pair of, sure or not, counts alone where
// P(aspect) is kSurePair or more, and its opinion is NULL; so does such an opinion, of an aspect
// that is NULL. And phrases are told apart by their letters, not their places: a question names
// nothing else, so equal phrases of a text are one.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "worker/text/data/aspect_file.h"
#include "worker/text/data/text_questions.h"

namespace hpo::text {

// Chen et al. 2021 have it so. DimABSA 2026's baseline takes 0.9 of the root of the same product.
inline constexpr double kSurePair = 0.8;

// What bounds the questions of a text, whatever a model says: 2 for all phrases, at most 2 *
// kMostPhrases for those of each, at most kMostPairs for classes. DimABSA's texts have up to 26
// aspects.
inline constexpr size_t kMostPhrases = 32;
inline constexpr size_t kMostPairs = 64;

// The range of valence and arousal in DimABSA.
inline constexpr float kLeastRating = 1.0f;
inline constexpr float kMostRating = 9.0f;

struct FoundPhrase {
  std::string words;         // bytes of the text; not empty
  double probability = 0.0;  // in (0, 1]
  bool operator==(const FoundPhrase&) const = default;
};

struct QuestionAnswer {
  // Of a question for aspects or opinions; one that is there twice counts with its greater
  // probability.
  std::vector<FoundPhrase> phrases = {};
  // Of one for the class.
  std::string category = {};
  float valence = 0.0f;
  float arousal = 0.0f;
};

// What a model has said of one text so far.
class AnsweredText {
 public:
  using Answers = std::map<std::pair<TextQuestion::Asks, std::string>, QuestionAnswer>;

  // Of phrases the kMostPhrases most probable are kept. Of a question that was answered before, the
  // first answer is.
  void Add(TextQuestion::Asks asks, const std::string& words, QuestionAnswer answer);

  // What is to be asked next: the questions that follow from the answers and have none. Answered,
  // they may bring others; there are none left after three times.
  std::vector<TextQuestion> OpenQuestions() const;

  // What the answers say, the most probable first, no two with the same QuadrupletKey. Numbers are
  // rounded to two decimals, as they are handed in, and lie within kLeastRating and kMostRating.
  // Precondition: no open questions.
  std::vector<Aspect> Quadruplets() const;

 private:
  Answers answers_;  // to questions, by what they ask for and their words
};

// By what quadruplets are told apart and compared: aspect, category and opinion, capital letters
// as small ones, as DimABSA's evaluation has it.
std::array<std::string, 3> QuadrupletKey(const Aspect& quadruplet);

}  // namespace hpo::text
