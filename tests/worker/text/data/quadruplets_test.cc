#include "worker/text/data/quadruplets.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Asks = TextQuestion::Asks;
using Phrases = std::vector<FoundPhrase>;

// Answers of a model that is asked as long as it leaves questions open: phrases by the words of the
// question, to others nothing; of every class "C" and these numbers.
class Interview {
 public:
  explicit Interview(std::map<std::string, Phrases> phrases, float valence = 5.0f,
                     float arousal = 5.0f) {
    for (auto open = text_.OpenQuestions(); !open.empty(); open = text_.OpenQuestions()) {
      rounds_.emplace_back();
      for (const TextQuestion& question : open) {
        rounds_.back().push_back(question.words);
        QuestionAnswer answer;
        if (question.asks == Asks::kClass) {
          answer = {.phrases = {}, .category = "C", .valence = valence, .arousal = arousal};
        } else {
          answer.phrases = phrases[question.words];
        }
        text_.Add(question.asks, question.words, answer);
      }
    }
  }

  const std::vector<std::vector<std::string>>& rounds() const { return rounds_; }

  // "aspect|opinion", in order.
  std::vector<std::string> Pairs() const {
    std::vector<std::string> pairs;
    for (const Aspect& quadruplet : text_.Quadruplets()) {
      pairs.push_back(absl::StrCat(quadruplet.name, "|", quadruplet.opinion));
    }
    return pairs;
  }

  const AnsweredText& text() const { return text_; }

 private:
  AnsweredText text_;
  std::vector<std::vector<std::string>> rounds_;
};

TEST(AnsweredText, AsksForAllThenForEachThenForClasses) {
  const Interview interview({{"which aspects ?", {{"wine", 0.9}, {"staff", 0.5}}},
                             {"which opinions ?", {{"good", 0.9}}},
                             {"which opinions of wine ?", {{"good", 0.9}}},
                             {"which aspects are good ?", {{"wine", 0.9}}}});
  EXPECT_THAT(interview.rounds(),
              ElementsAre(ElementsAre("which aspects ?", "which opinions ?"),
                          ElementsAre("which opinions of wine ?", "which opinions of staff ?",
                                      "which aspects are good ?"),
                          ElementsAre("wine , good")));
  EXPECT_THAT(interview.Pairs(), ElementsAre("wine|good"));
}

TEST(AnsweredText, WhatWasAnsweredIsNotAskedAgain) {
  AnsweredText text;
  text.Add(Asks::kAspects, "which aspects ?", {.phrases = {{"wine", 0.9}}});
  text.Add(Asks::kOpinions, "which opinions ?", {});
  text.Add(Asks::kOpinions, "which opinions of wine ?", {.phrases = {{"good", 0.95}}});
  ASSERT_EQ(text.OpenQuestions().size(), 1u);
  EXPECT_EQ(text.OpenQuestions()[0], (TextQuestion{.asks = Asks::kClass, .words = "wine , good"}));
  text.Add(Asks::kClass, "wine , good", {.category = "C", .valence = 7.0f, .arousal = 3.0f});
  // The first answer stays.
  text.Add(Asks::kClass, "wine , good", {.category = "D"});
  EXPECT_THAT(text.OpenQuestions(), IsEmpty());
  EXPECT_THAT(text.Quadruplets(),
              ElementsAre(Aspect{"wine", "good", "wine , good", "C", 7.0f, 3.0f}));
}

// Forward P(aspect) P(opinion | aspect), backward P(opinion) P(aspect | opinion).
TEST(AnsweredText, APairCountsByBothDirectionsOrByOneThatIsSure) {
  struct Case {
    double aspect, opinion_of, opinion, aspect_of;  // 0: not found
    bool counts;
  };
  const Case cases[] = {{0.3, 0.3, 0.3, 0.3, true},    {0.95, 0.9, 0.9, 0.0, true},
                        {0.9, 0.85, 0.95, 0.0, false}, {0.95, 0.0, 0.9, 0.95, true},
                        {0.95, 0.0, 0.85, 0.9, false}, {0.0, 0.0, 0.9, 0.95, true}};
  for (const Case& said : cases) {
    SCOPED_TRACE(
        absl::StrCat(said.aspect, " ", said.opinion_of, " ", said.opinion, " ", said.aspect_of));
    std::map<std::string, Phrases> phrases;
    const auto say = [&](const char* question, const char* phrase, double probability) {
      if (probability > 0.0) phrases[question] = {{phrase, probability}};
    };
    say("which aspects ?", "wine", said.aspect);
    say("which opinions of wine ?", "good", said.opinion_of);
    say("which opinions ?", "good", said.opinion);
    say("which aspects are good ?", "wine", said.aspect_of);
    const std::vector<std::string> pairs = Interview(phrases).Pairs();
    if (said.counts) {
      EXPECT_THAT(pairs, ElementsAre("wine|good"));
    } else {
      EXPECT_THAT(pairs, IsEmpty());  // nor does either count alone: a pair of both was said
    }
  }
}

TEST(AnsweredText, OneAspectHasSeveralOpinionsAndOneOpinionSeveralAspects) {
  const Interview interview({{"which aspects ?", {{"wine", 0.9}, {"food", 0.9}}},
                             {"which opinions ?", {{"good", 0.9}, {"cheap", 0.8}}},
                             {"which opinions of wine ?", {{"good", 0.5}, {"cheap", 0.4}}},
                             {"which opinions of food ?", {{"good", 0.6}}},
                             {"which aspects are good ?", {{"wine", 0.3}, {"food", 0.3}}},
                             {"which aspects are cheap ?", {{"wine", 0.3}}}});
  EXPECT_THAT(interview.Pairs(), ElementsAre("food|good", "wine|good", "wine|cheap"));
}

TEST(AnsweredText, WhatHasNoPairCountsAloneWhereItIsSure) {
  const Interview interview({{"which aspects ?", {{"wine", 0.85}, {"food", 0.7}}},
                             {"which opinions ?", {{"awful", 0.95}, {"good", 0.79}}}});
  EXPECT_THAT(interview.Pairs(), ElementsAre("|awful", "wine|"));
  EXPECT_THAT(interview.rounds().back(), ElementsAre("NULL , awful", "wine"));
  EXPECT_EQ(interview.text().Quadruplets()[0].name, "");
}

TEST(AnsweredText, ATextOfWhichNothingIsSaidHasNoQuadruplets) {
  const Interview interview({});
  EXPECT_EQ(interview.rounds().size(), 1u);
  EXPECT_THAT(interview.Pairs(), IsEmpty());
}

// By the place the model is surest of.
TEST(AnsweredText, EqualPhrasesAreOne) {
  const Interview interview({{"which aspects ?", {{"food", 0.9}, {"wine", 0.9}}},
                             {"which opinions ?", {{"good", 0.3}, {"good", 0.9}}},
                             {"which opinions of food ?", {{"good", 0.5}, {"good", 0.95}}},
                             {"which aspects are good ?", {{"wine", 0.95}}}});
  // 0.9 * 0.95 of each, by one direction.
  EXPECT_THAT(interview.Pairs(), ElementsAre("food|good", "wine|good"));
  EXPECT_EQ(interview.rounds()[1].size(), 3u);
}

// The shared task's evaluation takes both for the same and counts neither.
TEST(AnsweredText, QuadrupletsThatDifferInCapitalsAreOne) {
  const Interview interview({{"which aspects ?", {{"Wine", 0.95}, {"wine", 0.9}, {"ÉTÉ", 0.9}}},
                             {"which opinions of Wine ?", {{"good", 0.95}}},
                             {"which opinions of wine ?", {{"Good", 0.95}}},
                             {"which opinions of ÉTÉ ?", {{"good", 0.95}}}});
  EXPECT_THAT(interview.Pairs(), ElementsAre("Wine|good", "ÉTÉ|good"));
  EXPECT_EQ(QuadrupletKey({.name = "ÉTÉ", .opinion = "", .category = "FOOD#Q"}),
            (std::array<std::string, 3>{"été", "food#q", ""}));
}

Phrases Many(const char* prefix, int count) {
  Phrases phrases;
  for (int i = 0; i < count; ++i) phrases.push_back({absl::StrCat(prefix, i), 0.5 + 0.004 * i});
  return phrases;
}

TEST(AnsweredText, AsksNoMoreThanItsBounds) {
  std::map<std::string, Phrases> phrases = {{"which aspects ?", Many("a", 100)},
                                            {"which opinions ?", Many("o", 100)}};
  for (int i = 0; i < 100; ++i) {
    phrases[absl::StrCat("which opinions of a", i, " ?")] = Many("o", 100);
    phrases[absl::StrCat("which aspects are o", i, " ?")] = Many("a", 100);
  }
  const Interview interview(phrases);
  ASSERT_EQ(interview.rounds().size(), 3u);
  EXPECT_EQ(interview.rounds()[1].size(), 2 * kMostPhrases);
  EXPECT_EQ(interview.rounds()[1].front(), "which opinions of a99 ?");
  EXPECT_EQ(interview.rounds()[2].size(), kMostPairs);
  EXPECT_EQ(interview.Pairs().front(), "a99|o99");
}

TEST(AnsweredText, NumbersAreRatingsOfTwoDecimals) {
  const std::map<std::string, Phrases> one = {{"which aspects ?", {{"wine", 0.9}}}};
  const Aspect outside = Interview(one, 9.3f, -2.0f).text().Quadruplets().front();
  EXPECT_EQ(outside.valence, 9.0f);
  EXPECT_EQ(outside.arousal, 1.0f);
  const Aspect inside = Interview(one, 4.5678f, 1.004f).text().Quadruplets().front();
  EXPECT_FLOAT_EQ(inside.valence, 4.57f);
  EXPECT_FLOAT_EQ(inside.arousal, 1.0f);
}

}  // namespace
}  // namespace hpo::text
