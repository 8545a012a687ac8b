#include "cli/commands/trials/trial_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

using testing::ElementsAre;

std::vector<int64_t> Numbers(bool in_order_of_numbers) {
  std::vector<Trial> trials;
  for (const int64_t number : {9, 5, 7, 3}) {
    trials.push_back({.id = {.study = "s", .number = TrialNumber{number}}});
  }
  std::vector<int64_t> numbers;
  for (const Trial& trial : SelectTrials(trials, {7, 9, 3, 8}, in_order_of_numbers)) {
    numbers.push_back(trial.id.number.value);
  }
  return numbers;
}

TEST(SelectTrials, KeepsThoseThatTheServerNames) {
  EXPECT_THAT(Numbers(/*in_order_of_numbers=*/true), ElementsAre(7, 9, 3));
  EXPECT_THAT(Numbers(/*in_order_of_numbers=*/false), ElementsAre(9, 7, 3));
}

TEST(OfOption, NamesTheOptionThatWasGiven) {
  EXPECT_EQ(OfOption(absl::InvalidArgumentError("where: lr: expected a number")).message(),
            "--where: lr: expected a number");
  EXPECT_EQ(OfOption(absl::NotFoundError("study s: expected one that exists")).message(),
            "study s: expected one that exists");
}

}  // namespace
}  // namespace hpo::cli
