#include "sampler/tpe/tpe_scores.h"

#include <cmath>

#include "gtest/gtest.h"
#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

constexpr char kAmongAll[] = " times as likely among the good trials as among all";

TEST(TpeScores, MultiplyFactorsToTheirPowers) {
  TpeScores scores(2);
  scores.Multiply("quality", {1.0, 2.0});
  scores.Multiply("memory", {0.5, -1.0}, 2.0);
  EXPECT_EQ(scores.totals(), (std::vector<double>{2.0, 0.0}));
}

// One factor rules a candidate out and another has never seen its like.
TEST(TpeScores, WhatIsNotANumberIsWorst) {
  TpeScores scores(3);
  scores.Multiply("quality", {-kUnbounded, kUnbounded, 0.0});
  scores.Multiply("memory", {kUnbounded, -kUnbounded, std::nan("")});
  scores.Multiply("prior", {-kUnbounded, 1.0, kUnbounded}, 0.0);
  EXPECT_EQ(scores.totals(), std::vector<double>(3, -kUnbounded));
  EXPECT_EQ(scores.Explain(0),
            std::string("decided by memory: 0") + kAmongAll + " (quality 0, memory inf, prior 0)");
}

TEST(TpeScores, OneFactorAloneDecides) {
  TpeScores scores(2);
  scores.Multiply("quality", {std::log(0.5), std::log(4.0)});
  EXPECT_EQ(scores.Explain(1), std::string("decided by quality: 4") + kAmongAll);
}

// The largest factor of a candidate is not what sets it apart where all have it.
TEST(TpeScores, WhatSetsItApartFromTheOthersDecided) {
  TpeScores scores(4);
  scores.Multiply("quality", {std::log(3.0), std::log(3.0), std::log(2.5), std::log(2.0)});
  scores.Multiply("memory", {std::log(1.5), -kUnbounded, std::log(0.5), std::log(0.4)});
  EXPECT_EQ(scores.Explain(0),
            std::string("decided by memory: 4.5") + kAmongAll + " (quality 3, memory 1.5)");
  EXPECT_EQ(scores.Explain(3),
            std::string("decided by memory: 0.8") + kAmongAll + " (quality 2, memory 0.4)");
}

TEST(TpeScores, TheFirstOfEqualsDecided) {
  TpeScores scores(1);
  scores.Multiply("quality", {-1.0});
  scores.Multiply("failures", {1.0});
  EXPECT_EQ(scores.Explain(0),
            std::string("decided by quality: 1") + kAmongAll + " (quality 0.368, failures 2.72)");
}

}  // namespace
}  // namespace hpo::sampler
