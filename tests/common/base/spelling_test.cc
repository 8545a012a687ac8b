#include "common/base/spelling.h"

#include <gtest/gtest.h>

namespace hpo {
namespace {

TEST(Spelling, CountsEdits) {
  const struct {
    const char* a;
    const char* b;
    int distance;
  } cases[] = {{"", "", 0},
               {"", "abc", 3},
               {"budget", "budget", 0},
               {"bugdet", "budget", 1},  // neighbours swapped
               {"budgt", "budget", 1},
               {"budgets", "budget", 1},
               {"badget", "budget", 1},
               {"kitten", "sitting", 3},
               {"ab", "ba", 1},
               {"abc", "xyz", 3}};
  for (const auto& test : cases) {
    SCOPED_TRACE(std::string(test.a) + " / " + test.b);
    EXPECT_EQ(EditDistance(test.a, test.b), test.distance);
    EXPECT_EQ(EditDistance(test.b, test.a), test.distance);
  }
}

TEST(Spelling, SuggestsTheNearestCloseWord) {
  const std::vector<std::string> keys = {"budget", "pruner", "memory", "name"};
  EXPECT_EQ(ClosestWord("bugdet", keys), "budget");
  EXPECT_EQ(ClosestWord("nam", keys), "name");
  EXPECT_EQ(ClosestWord("parameters", keys), std::nullopt);
  EXPECT_EQ(ClosestWord("x", {}), std::nullopt);
  EXPECT_EQ(ClosestWord("9", {"8"}), std::nullopt);
  EXPECT_EQ(ClosestWord("ca", {"cb", "cc"}), "cb");
}

TEST(Spelling, WritesTheSuggestionOrNothing) {
  EXPECT_EQ(DidYouMean("prunner", {"pruner"}), "; did you mean 'pruner'?");
  EXPECT_EQ(DidYouMean("zzz", {"pruner"}), "");
}

TEST(Spelling, WhatBeginsWithTheWordIsMeant) {
  const std::vector<std::string> models = {"bert-base-cased", "bert-large-uncased",
                                           "bert-large-cased"};
  EXPECT_EQ(ClosestWord("bert-large", models), "bert-large-uncased");
  EXPECT_EQ(ClosestWord("be", models), std::nullopt) << "too short to say";
}

TEST(Spelling, ContinuesANameWhereOneIsMeant) {
  const std::vector<std::string> models = {"bert-large-cased", "bert-large-uncased", "roberta-base",
                                           "roberta-large", "camembert-base"};
  const std::pair<std::string, std::optional<std::string>> cases[] = {
      {"bert-large", "bert-large-uncased"},
      {"camembert", "camembert-base"},
      {"roberta", std::nullopt},
      {"bert-lar", std::nullopt},
      {"roberta-base", std::nullopt},
      {"", std::nullopt}};
  for (const auto& [word, meant] : cases) {
    SCOPED_TRACE(word);
    EXPECT_EQ(NameContinued(word, models), meant);
  }
}

}  // namespace
}  // namespace hpo
