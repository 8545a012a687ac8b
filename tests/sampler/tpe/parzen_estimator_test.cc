#include "sampler/tpe/parzen_estimator.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sampler/space/model_view.h"
#include "sampler/tpe/model_space.h"
#include "tests/golden_file.h"
#include "tests/sampler/golden_space.h"
#include "tests/sampler/parzen_of.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

Point At(double position) { return {{.present = true, .at = position, .cell = {}}}; }
Point Absent() { return {Coordinate{}}; }

double LogDensityAt(const ParzenEstimator& estimator, const Point& point) {
  return estimator.LogDensities({&point, 1}, Dependence::kJoint)[0];
}

const std::vector<ParzenAxis> kOneReal = {{.kind = ParzenAxis::Kind::kContinuous}};

// Optuna's internal value (the index of a choice) as ours.
ParamValue ValueOf(const Domain& domain, double internal) {
  if (const auto* choices = std::get_if<CategoricalDomain>(&domain)) {
    return choices->choices[static_cast<size_t>(internal)];
  }
  return NearestValue(domain, internal);
}

std::vector<ParamMap> ParamsOf(const SearchSpace& space, const nlohmann::json& columns) {
  std::vector<ParamMap> rows(columns[space.parameters[0].name].size());
  for (const Parameter& parameter : space.parameters) {
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i][parameter.name] = ValueOf(parameter.domain, columns[parameter.name][i]);
    }
  }
  return rows;
}

TEST(ParzenEstimator, DensitiesAgreeWithOptuna) {
  const auto golden = ReadGolden("parzen.json");
  for (const auto& test : golden["densities"]) {
    SCOPED_TRACE(test["parameters"].dump());
    SearchSpace space;
    double log_units = 0.0;
    for (const std::string name : test["parameters"]) {
      const Domain domain = DomainOf(golden["parameters"][name]);
      space.parameters.push_back(MakeParameter(name, domain));
      log_units += LogUnit(domain);
    }
    const ModelSpace model(space, ModelView::kQuality);
    std::vector<Point> points;
    for (const ParamMap& params : ParamsOf(space, test["observations"])) {
      points.push_back(model.Encode(params));
    }
    const ParzenEstimator estimator = ParzenOf(model.axes(), points, test["prior_weight"]);
    const std::vector<ParamMap> asked = ParamsOf(space, test["points"]);
    for (size_t i = 0; i < asked.size(); ++i) {
      SCOPED_TRACE(FormatParams(asked[i]));
      const double expected = test["log_density"][i];
      EXPECT_NEAR(LogDensityAt(estimator, model.Encode(asked[i])) - log_units, expected,
                  1e-9 * std::max(1.0, std::abs(expected)));
    }
  }
}

TEST(ParzenEstimator, DensityIntegratesToOne) {
  const std::vector<Point> points = {At(0.0), At(0.1), At(0.11), Absent(), At(1.0)};
  const ParzenEstimator estimator = ParzenOf(kOneReal, points);
  EXPECT_EQ(estimator.num_observations(), points.size());
  constexpr int kCells = 20'000;
  double sum = 0.0;
  for (int i = 0; i < kCells; ++i) sum += std::exp(LogDensityAt(estimator, At((i + 0.5) / kCells)));
  EXPECT_NEAR(sum / kCells, 1.0, 1e-6);
}

TEST(ParzenEstimator, MassesOfAGridAndOfChoicesSumToOne) {
  SearchSpace space;
  CategoricalDomain choices;
  for (const bool flag : {false, true}) choices.choices.push_back(flag);
  space.parameters = {MakeParameter("n", IntDomain{.low = 1, .high = 40, .log = true}),
                      MakeParameter("flag", choices)};
  const ModelSpace model(space, ModelView::kQuality);
  std::vector<Point> points;
  for (const int64_t n : {1, 2, 2, 39}) points.push_back(model.Encode({{"n", n}, {"flag", true}}));
  const ParzenEstimator estimator = ParzenOf(model.axes(), points);
  double sum = 0.0;
  for (int64_t n = 1; n <= 40; ++n) {
    for (const bool flag : {false, true}) {
      sum += std::exp(LogDensityAt(estimator, model.Encode({{"n", n}, {"flag", flag}})));
    }
  }
  EXPECT_NEAR(sum, 1.0, 1e-9);
}

TEST(ParzenEstimator, AbsentAxesAreIntegratedOut) {
  const std::vector<Point> points = {At(0.2), At(0.9)};
  const ParzenEstimator estimator = ParzenOf(kOneReal, points);
  EXPECT_NEAR(LogDensityAt(estimator, Absent()), 0.0, 1e-12);
}

TEST(ParzenEstimator, ObservationsThatLackAnAxisSayNothingOfIt) {
  const std::vector<Point> with_absent = {Absent(), Absent()};
  const ParzenEstimator estimator = ParzenOf(kOneReal, with_absent);
  const ParzenEstimator prior = ParzenOf(kOneReal, {});
  for (const double x : {0.0, 0.3, 1.0}) {
    EXPECT_NEAR(LogDensityAt(estimator, At(x)), LogDensityAt(prior, At(x)), 1e-12);
  }
}

TEST(ParzenEstimator, DrawsFollowTheDensity) {
  const std::vector<Point> points = {At(0.8), At(0.82), At(0.84)};
  const ParzenEstimator estimator = ParzenOf(kOneReal, points);
  double expected = 0.0;
  for (int i = 0; i < 5000; ++i) {
    const double x = 0.5 + (i + 0.5) / 10'000;
    expected += std::exp(LogDensityAt(estimator, At(x))) / 10'000;
  }
  Rng rng(1, 2);
  int above = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    const size_t component = estimator.DrawComponent(0, rng);
    above += estimator.DrawPosition(component, 0, {0.0, 1.0}, rng) > 0.5;
  }
  EXPECT_NEAR(static_cast<double>(above) / kDraws, expected, 0.01);
}

// 200 draws: the least accepted frequency is four deviations off.
TEST(ParzenEstimator, ComponentsAreDrawnOfThoseWithTheAxis) {
  const std::vector<Point> points = {At(0.2), Absent(), Absent()};
  const ParzenEstimator estimator = ParzenOf(kOneReal, points);
  EXPECT_TRUE(estimator.HasAxis(0, 0));
  EXPECT_FALSE(estimator.HasAxis(1, 0));
  EXPECT_TRUE(estimator.HasAxis(3, 0));  // the prior's
  Rng rng(1, 3);
  std::vector<int> with_axis(4);
  for (int i = 0; i < 200; ++i) ++with_axis[estimator.DrawComponent(0, rng)];
  EXPECT_NEAR(with_axis[0], 100, 28);
  EXPECT_EQ(with_axis[1] + with_axis[2], 0);
}

// The joint density is untouched by the shares, the product of both is not.
TEST(ParzenEstimator, AMarginalCountsByItsShare) {
  constexpr double kShare = 0.25;
  std::vector<ParzenAxis> axes(2, kOneReal[0]);
  axes[1].marginal_share = kShare;
  const std::vector<Point> points = {{At(0.1)[0], At(0.9)[0]}, {At(0.4)[0], At(0.3)[0]}};
  const ParzenEstimator estimator = ParzenOf(axes, points);
  const auto log_density = [&](const Point& point, Dependence dependence) {
    return estimator.LogDensities({&point, 1}, dependence)[0];
  };
  const Point both = {At(0.2)[0], At(0.7)[0]};
  const Point first = {At(0.2)[0], Coordinate{}};
  const Point second = {Coordinate{}, At(0.7)[0]};
  EXPECT_NEAR(
      log_density(both, Dependence::kIndependent),
      log_density(first, Dependence::kIndependent) + log_density(second, Dependence::kIndependent),
      1e-12);
  EXPECT_NEAR(log_density(both, Dependence::kBoth),
              log_density(both, Dependence::kJoint) + log_density(first, Dependence::kIndependent) +
                  kShare * log_density(second, Dependence::kIndependent),
              1e-12);
}

// A density times the sum of all weights is a sum over components, each times its weight.
TEST(ParzenEstimator, ObservationsCountWhatTheyAreGiven) {
  SearchSpace space;
  CategoricalDomain choices;
  for (const bool flag : {false, true}) choices.choices.push_back(flag);
  space.parameters = {MakeParameter("x", FloatDomain{.low = 0.0, .high = 1.0}),
                      MakeParameter("n", IntDomain{.low = 1, .high = 5}),
                      MakeParameter("flag", choices)};
  const ModelSpace model(space, ModelView::kQuality);
  const ParzenEstimator prior(model.axes());
  const std::vector<ParamMap> asked = {{{"x", 0.7}, {"n", int64_t{2}}, {"flag", true}},
                                       {{"x", 0.7}},
                                       {{"n", int64_t{2}}},
                                       {{"flag", true}}};
  for (const ParamMap& params : asked) {
    SCOPED_TRACE(FormatParams(params));
    const Point point = model.Encode(params);
    const Dependence dependence = params.size() > 1 ? Dependence::kJoint : Dependence::kIndependent;
    ParzenEstimator estimator(model.axes());
    estimator.Insert(0, model.Encode({{"x", 0.9}, {"n", int64_t{1}}, {"flag", true}}));
    estimator.Insert(1, model.Encode({{"x", 0.2}, {"n", int64_t{4}}, {"flag", false}}));
    const auto sum_at = [&](double first, double second) {
      estimator.Refit(std::vector<double>{first, second});
      return std::exp(estimator.LogDensities({&point, 1}, dependence)[0]) * (first + second + 1.0);
    };
    const double of_prior = std::exp(prior.LogDensities({&point, 1}, dependence)[0]);
    const double both = sum_at(1.0, 1.0);
    const double of_first = (both - sum_at(0.1, 1.0)) / 0.9;
    const double of_second = (both - sum_at(1.0, 0.1)) / 0.9;
    EXPECT_GT(of_first, 1.2 * of_second);
    EXPECT_NEAR(of_first + of_second + of_prior, both, 1e-12 * both);
    estimator.Refit();
    EXPECT_NEAR(3.0 * std::exp(estimator.LogDensities({&point, 1}, dependence)[0]), both,
                1e-12 * both);
  }
}

// 1,000 draws: the least accepted frequency is four deviations off.
TEST(ParzenEstimator, DrawsGoByTheWeightsThatAreGiven) {
  ParzenEstimator estimator(kOneReal);
  estimator.Insert(0, At(0.1));
  estimator.Insert(1, At(0.9));
  estimator.Refit(std::vector<double>{0.25, 1.0});
  estimator.PrepareDraws();
  Rng rng(1, 5);
  std::vector<int> counts(3);
  for (int i = 0; i < 1000; ++i) ++counts[estimator.DrawComponent(0, rng)];
  EXPECT_NEAR(counts[0], 111, 40);
  EXPECT_NEAR(counts[1], 444, 63);
  EXPECT_NEAR(counts[2], 444, 63);
}

// Whether observations come or go.
TEST(ParzenEstimator, AGroupIsAMixtureOfTheObservationsThatHaveIt) {
  const std::vector<ParzenAxis> pair(2, kOneReal[0]);
  std::vector<ParzenAxis> axes = {pair[0], pair[1], kOneReal[0]};
  axes[2].group = 1;
  std::vector<Point> all;
  std::vector<Point> of_pair;
  std::vector<Point> of_last;
  for (int i = 0; i < 20; ++i) {
    const double x = 0.04 * i + 0.1;
    const Coordinate last = i % 3 == 0 ? Coordinate{} : At(1.0 - x)[0];
    all.push_back({At(x)[0], At(x * x)[0], last});
    of_pair.push_back({all.back()[0], all.back()[1]});
    if (last.present) of_last.push_back({last});
  }
  ParzenEstimator grouped = ParzenOf(axes, all);
  const ParzenEstimator first = ParzenOf(pair, of_pair);
  const ParzenEstimator second = ParzenOf(kOneReal, of_last);
  const Point asked = {At(0.3)[0], At(0.7)[0], At(0.2)[0]};
  const double expected =
      LogDensityAt(first, {asked[0], asked[1]}) + LogDensityAt(second, {asked[2]});
  EXPECT_NEAR(LogDensityAt(grouped, asked), expected, 1e-12);
  EXPECT_NEAR(LogDensityAt(grouped, {asked[0], asked[1], Coordinate{}}),
              LogDensityAt(first, {asked[0], asked[1]}), 1e-12);
  for (const Point& more : {Point{At(0.5)[0], At(0.5)[0], Coordinate{}}, asked}) {
    grouped.Insert(100, more);
    grouped.Refit();
    EXPECT_GT(std::abs(LogDensityAt(grouped, asked) - expected), 1e-3);
    grouped.Erase(100);
  }
  grouped.Refit();
  EXPECT_NEAR(LogDensityAt(grouped, asked), expected, 1e-12);
}

TEST(ParzenEstimator, DrawsStayWithinWhatIsAllowed) {
  const std::vector<Point> points = {At(0.99), At(0.98)};
  const ParzenEstimator estimator = ParzenOf(kOneReal, points);
  Rng rng(1, 2);
  for (int i = 0; i < 1000; ++i) {
    const double x = estimator.DrawPosition(rng.Below(3), 0, {0.1, 0.2}, rng);
    ASSERT_GE(x, 0.1);
    ASSERT_LE(x, 0.2);
  }
  EXPECT_EQ(estimator.DrawPosition(0, 0, {0.4, 0.4}, rng), 0.4);
}

TEST(ParzenEstimator, ChoicesAreDrawnByTheirKernelAmongTheAllowed) {
  const std::vector<ParzenAxis> axes = {{ParzenAxis::Kind::kCategorical, 4}};
  const std::vector<Point> points(9, At(2.0));
  const ParzenEstimator estimator = ParzenOf(axes, points);
  Rng rng(5, 6);
  std::vector<int> counts(4);
  const std::vector<size_t> allowed = {0, 2};
  for (int i = 0; i < 10'000; ++i) ++counts[estimator.DrawChoice(0, 0, allowed, rng)];
  // 0.1 against 1.1.
  EXPECT_NEAR(counts[0], 10'000 / 12.0, 120);
  EXPECT_EQ(counts[1] + counts[3], 0);
}

// Two numbers, of which the second is not always there, a grid and a choice.
Point RandomPoint(Rng& rng) {
  Point point(4);
  point[0] = {.present = true, .at = rng.Uniform(), .cell = {}};
  point[1] = {.present = rng.Below(4) != 0, .at = rng.Uniform(), .cell = {}};
  const double value = static_cast<double>(rng.Below(10)) / 10.0;
  point[2] = {.present = true, .at = value + 0.05, .cell = {value, value + 0.1}};
  point[3] = {.present = true, .at = static_cast<double>(rng.Below(3)), .cell = {}};
  return point;
}

const std::vector<ParzenAxis> kFourAxes = {
    {.kind = ParzenAxis::Kind::kContinuous},
    {.kind = ParzenAxis::Kind::kContinuous},
    {.kind = ParzenAxis::Kind::kGrid},
    {.kind = ParzenAxis::Kind::kCategorical, .num_choices = 3}};

// Observations come in any order, leave and come back, past several turns of what is settled.
TEST(ParzenEstimator, IsThatOfItsObservationsHoweverTheyCame) {
  Rng rng(3, 0);
  std::map<int64_t, Point> held;
  ParzenEstimator grown(kFourAxes, 1.0, RowOrder::kByPlace);
  std::vector<Point> points;
  for (int i = 0; i < 8; ++i) points.push_back(RandomPoint(rng));
  for (int64_t turn = 0; turn < 1100; ++turn) {
    const int64_t number = turn ^ 1;
    held[number] = RandomPoint(rng);
    grown.Insert(number, held[number]);
    if (turn % 3 == 0) {
      const auto leaving = std::next(held.begin(), static_cast<ptrdiff_t>(rng.Below(held.size())));
      grown.Erase(leaving->first);
      if (turn % 2 == 0) {
        grown.Insert(leaving->first, leaving->second);
      } else {
        held.erase(leaving);
      }
    }
    grown.Refit();
    if (turn % 100 != 50) continue;
    SCOPED_TRACE(turn);
    ParzenEstimator anew(kFourAxes, 1.0, RowOrder::kByPlace);
    ParzenEstimator by_age(kFourAxes);
    for (const auto& [known, point] : held) {
      anew.Insert(known, point);
      by_age.Insert(known, point);
    }
    anew.Refit();
    by_age.Refit();
    const std::vector<double> logs = grown.LogDensities(points, Dependence::kBoth);
    EXPECT_EQ(logs, anew.LogDensities(points, Dependence::kBoth));
    const std::vector<double> expected = by_age.LogDensities(points, Dependence::kBoth);
    for (size_t i = 0; i < points.size(); ++i) EXPECT_NEAR(logs[i], expected[i], 1e-12) << i;
  }
}

}  // namespace
}  // namespace hpo::sampler
