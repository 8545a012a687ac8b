#include "worker/text/data/quadruplets.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/status.h"
#include "worker/text/tokenizers/parts/text_normalizer.h"

namespace hpo::text {
namespace {

using Asks = TextQuestion::Asks;

// An empty one: NULL.
struct PhrasePair {
  std::string aspect;
  std::string opinion;
  double probability = 0.0;
};

// What the two directions say of a pair; 0: nothing.
struct Directions {
  double forward = 0.0;
  double backward = 0.0;
};

using DirectedPairs = std::map<std::pair<std::string, std::string>, Directions>;

// The most probable `most`, best first, each once. `name` is what is to differ.
template <typename Found, typename Name>
std::vector<Found> BestOfEach(std::vector<Found> all, size_t most, Name name) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Found& a, const Found& b) { return a.probability > b.probability; });
  std::set<decltype(name(all.front()))> known;
  std::erase_if(all, [&](const Found& found) { return !known.insert(name(found)).second; });
  if (all.size() > most) all.resize(most);
  return all;
}

// The phrases of `alone` that `paired` has not, as pairs with NULL.
std::vector<PhrasePair> SureAlone(const std::vector<FoundPhrase>& alone,
                                  const std::set<std::string>& paired,
                                  std::string PhrasePair::*phrase) {
  std::vector<PhrasePair> pairs;
  for (const FoundPhrase& found : alone) {
    if (found.probability < kSurePair || paired.contains(found.words)) continue;
    pairs.push_back({.aspect = {}, .opinion = {}, .probability = found.probability});
    pairs.back().*phrase = found.words;
  }
  return pairs;
}

// The pairs that count; see the header.
std::vector<PhrasePair> JoinPairs(const DirectedPairs& directed,
                                  const std::vector<FoundPhrase>& aspects,
                                  const std::vector<FoundPhrase>& opinions) {
  std::vector<PhrasePair> pairs;
  std::set<std::string> paired_aspects;
  std::set<std::string> paired_opinions;
  for (const auto& [phrases, said] : directed) {
    const auto& [aspect, opinion] = phrases;
    paired_aspects.insert(aspect);
    paired_opinions.insert(opinion);
    const double probability = std::max(said.forward, said.backward);
    const bool both = said.forward > 0.0 && said.backward > 0.0;
    if (both || probability >= kSurePair) pairs.push_back({aspect, opinion, probability});
  }
  for (const PhrasePair& pair : SureAlone(aspects, paired_aspects, &PhrasePair::aspect)) {
    pairs.push_back(pair);
  }
  for (const PhrasePair& pair : SureAlone(opinions, paired_opinions, &PhrasePair::opinion)) {
    pairs.push_back(pair);
  }
  return BestOfEach(std::move(pairs), kMostPairs, [](const PhrasePair& pair) {
    return QuadrupletKey({.name = pair.aspect, .opinion = pair.opinion});
  });
}

float AsHandedIn(float number) {
  return std::clamp(std::round(100.0f * number) / 100.0f, kLeastRating, kMostRating);
}

// What to ask of the answers, or to make of them.
struct Reading {
  std::vector<TextQuestion> open;
  std::vector<PhrasePair> pairs;  // where nothing but classes is open
};

Reading Read(const AnsweredText::Answers& answers) {
  Reading reading;
  const auto phrases_of = [&](Asks asks, const std::string& of) -> std::vector<FoundPhrase> {
    const std::string words = SpanQuestion(asks, of);
    const auto answer = answers.find({asks, words});
    if (answer != answers.end()) return answer->second.phrases;
    reading.open.push_back({.asks = asks, .words = words});
    return {};
  };
  const std::vector<FoundPhrase> aspects = phrases_of(Asks::kAspects, "");
  const std::vector<FoundPhrase> opinions = phrases_of(Asks::kOpinions, "");
  DirectedPairs directed;
  for (const FoundPhrase& aspect : aspects) {
    for (const FoundPhrase& opinion : phrases_of(Asks::kOpinions, aspect.words)) {
      directed[{aspect.words, opinion.words}].forward = aspect.probability * opinion.probability;
    }
  }
  for (const FoundPhrase& opinion : opinions) {
    for (const FoundPhrase& aspect : phrases_of(Asks::kAspects, opinion.words)) {
      directed[{aspect.words, opinion.words}].backward = aspect.probability * opinion.probability;
    }
  }
  if (!reading.open.empty()) return reading;
  reading.pairs = JoinPairs(directed, aspects, opinions);
  for (const PhrasePair& pair : reading.pairs) {
    const std::string words = ClassQuestion(pair.aspect, pair.opinion);
    if (answers.contains({Asks::kClass, words})) continue;
    reading.open.push_back({.asks = Asks::kClass, .words = words});
  }
  return reading;
}

}  // namespace

void AnsweredText::Add(Asks asks, const std::string& words, QuestionAnswer answer) {
  answer.phrases = BestOfEach(std::move(answer.phrases), kMostPhrases,
                              [](const FoundPhrase& phrase) { return phrase.words; });
  answers_.try_emplace({asks, words}, std::move(answer));
}

std::vector<TextQuestion> AnsweredText::OpenQuestions() const { return Read(answers_).open; }

std::vector<Aspect> AnsweredText::Quadruplets() const {
  const Reading reading = Read(answers_);
  HPO_CHECK(reading.open.empty());
  std::vector<Aspect> quadruplets;
  for (const PhrasePair& pair : reading.pairs) {
    const std::string question = ClassQuestion(pair.aspect, pair.opinion);
    const QuestionAnswer& answer = answers_.at({Asks::kClass, question});
    quadruplets.push_back({.name = pair.aspect,
                           .opinion = pair.opinion,
                           .question = question,
                           .category = answer.category,
                           .valence = AsHandedIn(answer.valence),
                           .arousal = AsHandedIn(answer.arousal)});
  }
  return quadruplets;
}

std::array<std::string, 3> QuadrupletKey(const Aspect& quadruplet) {
  const std::vector<NormalizerStep> small = {Lowercase{}};
  return {Normalize(small, quadruplet.name), Normalize(small, quadruplet.category),
          Normalize(small, quadruplet.opinion)};
}

}  // namespace hpo::text
