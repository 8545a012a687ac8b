#include "sampler/tpe_sampler.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/sampler/simulated_study.h"

namespace hpo {
namespace {

StudySpec SmoothStudy(const std::string& sampler, uint64_t seed) {
  StudySpec study;
  study.sampler = {.type = sampler, .seed = seed};
  study.space.parameters = {MakeParameter("x", FloatDomain{.low = -5.0, .high = 10.0}),
                            MakeParameter("y", FloatDomain{.low = 0.0, .high = 15.0})};
  return study;
}

double Branin(const ParamMap& params) {
  const double x = *FindDouble(params, "x");
  const double y = *FindDouble(params, "y");
  const double pi = std::acos(-1.0);
  const double valley = y - 5.1 * x * x / (4.0 * pi * pi) + 5.0 * x / pi - 6.0;
  return valley * valley + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * std::cos(x) + 10.0;
}

double MedianBest(const std::function<StudySpec(uint64_t seed)>& make,
                  const SimulatedObjective& objective, int num_trials) {
  std::vector<double> best;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedStudy study(make(seed), objective);
    for (int i = 0; i < num_trials; ++i) study.RunOne();
    best.push_back(study.best_loss());
  }
  return MedianOf(best);
}

TEST(TpeSampler, BeatsRandomOnASmoothFunction) {
  const auto best = [](const std::string& sampler) {
    return MedianBest([&](uint64_t seed) { return SmoothStudy(sampler, seed); }, Branin, 80);
  };
  constexpr double kOptimum = 0.397887;
  EXPECT_LT(best("tpe") - kOptimum, 0.25 * (best("random") - kOptimum));
}

}  // namespace
}  // namespace hpo
