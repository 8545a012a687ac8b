#include "worker/text/data/text_questions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hpo::text {
namespace {

using Asks = TextQuestion::Asks;
using Member = std::string Aspect::*;

// What the answers of a question are, and what they are asked of.
struct Direction {
  Asks asks;
  Member answer;
  Member of;
  const char* all;    // the question for all answers
  const char* begin;  // and for those of one phrase
  const char* end;
};

constexpr Direction kForward = {.asks = Asks::kOpinions,
                                .answer = &Aspect::opinion,
                                .of = &Aspect::name,
                                .all = "which opinions ?",
                                .begin = "which opinions of ",
                                .end = " ?"};
constexpr Direction kBackward = {.asks = Asks::kAspects,
                                 .answer = &Aspect::name,
                                 .of = &Aspect::opinion,
                                 .all = "which aspects ?",
                                 .begin = "which aspects are ",
                                 .end = " ?"};

void AddOnce(const std::string& phrase, std::vector<std::string>& phrases) {
  if (phrase.empty() || std::find(phrases.begin(), phrases.end(), phrase) != phrases.end()) return;
  phrases.push_back(phrase);
}

TextQuestion AskForAll(const AspectRow& row, const Direction& direction) {
  TextQuestion question{.asks = direction.asks, .words = SpanQuestion(direction.asks)};
  for (const Aspect& aspect : row.aspects) AddOnce(aspect.*direction.answer, question.phrases);
  return question;
}

// One question for each phrase.
void AskForEach(const AspectRow& row, const std::vector<std::string>& phrases,
                const Direction& direction, std::vector<TextQuestion>& questions) {
  for (const std::string& phrase : phrases) {
    TextQuestion question{.asks = direction.asks, .words = SpanQuestion(direction.asks, phrase)};
    for (const Aspect& aspect : row.aspects) {
      if (aspect.*direction.of == phrase) AddOnce(aspect.*direction.answer, question.phrases);
    }
    questions.push_back(std::move(question));
  }
}

}  // namespace

std::string SpanQuestion(Asks asks, const std::string& of) {
  const Direction& direction = asks == Asks::kOpinions ? kForward : kBackward;
  return of.empty() ? direction.all : absl::StrCat(direction.begin, of, direction.end);
}

std::vector<TextQuestion> QuestionsOf(const AspectRow& row, bool with_spans) {
  std::vector<TextQuestion> questions;
  if (with_spans) {
    const TextQuestion aspects = AskForAll(row, kBackward);
    const TextQuestion opinions = AskForAll(row, kForward);
    questions.push_back(aspects);
    AskForEach(row, aspects.phrases, kForward, questions);
    questions.push_back(opinions);
    AskForEach(row, opinions.phrases, kBackward, questions);
  }
  for (size_t i = 0; i < row.aspects.size(); ++i) {
    questions.push_back({.asks = Asks::kClass, .words = row.aspects[i].question, .aspect = i});
  }
  return questions;
}

}  // namespace hpo::text
