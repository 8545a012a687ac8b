#include "sampler/pruners/signed_rank.h"

#include <cmath>

#include "gtest/gtest.h"

namespace hpo::sampler {
namespace {

TEST(SignedRank, CountsSignAssignments) {
  const std::pair<std::vector<double>, double> cases[] = {
      {{1.0}, 1.0 / 2},
      {{-1.0}, 1.0},
      {{0.0}, 1.0},
      {{1.0, 2.0, 3.0}, 1.0 / 8},
      {{1.0, 2.0, -3.0}, 5.0 / 8},
      {{-1.0, 2.0, 3.0}, 2.0 / 8},
      {{1.0, 1.0, 1.0}, 1.0 / 8},  // ties
      {{1.0, 1.0, -1.0}, 4.0 / 8},
      {{0.0, 1.0, 2.0}, 1.0 / 4},  // a zero changes no assignment
      {{0.0, 0.0, 0.0}, 1.0},
  };
  for (const auto& [differences, expected] : cases) {
    EXPECT_EQ(SignedRankTest(differences), expected) << testing::PrintToString(differences);
  }
}

// Sizes 1 ... n, all positive but every `negative`-th.
std::vector<double> Alternating(int n, int negative) {
  std::vector<double> differences;
  for (int i = 1; i <= n; ++i) differences.push_back(i % negative == 0 ? -i : i);
  return differences;
}

// scipy.stats.wilcoxon(d, alternative="greater", zero_method="zsplit").pvalue, SciPy 1.17.1.
TEST(SignedRank, EqualsSciPy) {
  EXPECT_NEAR(SignedRankTest(Alternating(50, 3)), 0.01308348408559823, 1e-14);
  EXPECT_NEAR(SignedRankTest(Alternating(51, 3)), 0.027926091017792348, 1e-14);
  std::vector<double> tied = Alternating(20, 3);
  for (double& difference : tied) difference = std::trunc(difference / 4.0);
  EXPECT_NEAR(SignedRankTest(tied), 0.05560759994795606, 1e-14);
  EXPECT_NEAR(SignedRankTest(std::vector<double>(14, 0.0)), 0.5, 1e-14);
}

TEST(SignedRank, OppositeSignsAddUpToMoreThanOneByWhatBothCount) {
  // Without ties, P(sum >= s) + P(sum <= s) = 1 + P(sum = s).
  const std::vector<double> differences = {3.0, -1.0, 2.0, -5.0, 4.0};
  std::vector<double> opposite;
  for (const double difference : differences) opposite.push_back(-difference);
  const double both = SignedRankTest(differences) + SignedRankTest(opposite);
  EXPECT_EQ(both, 1.0 + 3.0 / 32);  // 9 = 5+4 = 5+3+1 = 4+3+2
}

}  // namespace
}  // namespace hpo::sampler
