#include "worker/text/data/text_questions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Asks = TextQuestion::Asks;

AspectRow Row(const std::vector<std::pair<std::string, std::string>>& pairs) {
  AspectRow row{.text = "any"};
  for (const auto& [name, opinion] : pairs) {
    row.aspects.push_back({.name = name, .opinion = opinion, .question = name + " , " + opinion});
  }
  return row;
}

TEST(QuestionsOf, WithoutSpansThereIsOneForEachAspect) {
  EXPECT_THAT(QuestionsOf(Row({{"wine", "good"}, {"", ""}}), /*with_spans=*/false),
              ElementsAre(TextQuestion{.asks = Asks::kClass, .words = "wine , good", .aspect = 0},
                          TextQuestion{.asks = Asks::kClass, .words = " , ", .aspect = 1}));
}

// The six passes, the last two in one.
TEST(QuestionsOf, SpansAreAskedForForwardAndBackward) {
  const auto questions = QuestionsOf(Row({{"wine", "good"}, {"wine", "cheap"}, {"staff", "good"}}),
                                     /*with_spans=*/true);
  ASSERT_EQ(questions.size(), 2u + 2 + 2 + 3);
  const auto asked = [](Asks asks, const char* words, std::vector<std::string> phrases) {
    return TextQuestion{.asks = asks, .words = words, .phrases = std::move(phrases)};
  };
  EXPECT_EQ(questions[0], asked(Asks::kAspects, "which aspects ?", {"wine", "staff"}));
  EXPECT_EQ(questions[1], asked(Asks::kOpinions, "which opinions of wine ?", {"good", "cheap"}));
  EXPECT_EQ(questions[2], asked(Asks::kOpinions, "which opinions of staff ?", {"good"}));
  EXPECT_EQ(questions[3], asked(Asks::kOpinions, "which opinions ?", {"good", "cheap"}));
  EXPECT_EQ(questions[4], asked(Asks::kAspects, "which aspects are good ?", {"wine", "staff"}));
  EXPECT_EQ(questions[5], asked(Asks::kAspects, "which aspects are cheap ?", {"wine"}));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(questions[6 + i].asks, Asks::kClass);
    EXPECT_EQ(questions[6 + i].aspect, i);
  }
}

TEST(QuestionsOf, WhatIsNotSaidIsNeitherAskedForNorAnAnswer) {
  const auto questions = QuestionsOf(Row({{"", "good"}, {"menu", ""}}), /*with_spans=*/true);
  ASSERT_EQ(questions.size(), 2u + 1 + 1 + 2);
  EXPECT_THAT(questions[0].phrases, ElementsAre("menu"));
  EXPECT_EQ(questions[1].words, "which opinions of menu ?");
  EXPECT_THAT(questions[1].phrases, IsEmpty());
  EXPECT_THAT(questions[2].phrases, ElementsAre("good"));
  EXPECT_EQ(questions[3].words, "which aspects are good ?");
  EXPECT_THAT(questions[3].phrases, IsEmpty());
  // Also where a text says nothing at all.
  EXPECT_EQ(QuestionsOf(Row({{"", ""}}), /*with_spans=*/true).size(), 3u);
}

TEST(SpanQuestion, AsksAsTheQuestionsOfARow) {
  EXPECT_EQ(SpanQuestion(Asks::kAspects), "which aspects ?");
  EXPECT_EQ(SpanQuestion(Asks::kOpinions), "which opinions ?");
  EXPECT_EQ(SpanQuestion(Asks::kAspects, "good"), "which aspects are good ?");
  EXPECT_EQ(SpanQuestion(Asks::kOpinions, "wine"), "which opinions of wine ?");
}

}  // namespace
}  // namespace hpo::text
