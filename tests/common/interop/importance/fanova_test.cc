#include "common/interop/importance/fanova.h"

#include <cmath>
#include <functional>

#include "common/base/random.h"
#include "common/interop/importance/importance.h"
#include "common/interop/importance/partition_tree.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/interop/importance/golden_study.h"

namespace hpo {
namespace {

using Loss = std::function<double(double x, double y)>;

// Trials drawn evenly from [0, 1]^2, the same at every call.
std::vector<AssessedTrial> Drawn(int count, const Loss& loss) {
  Rng rng(7, 0);
  std::vector<AssessedTrial> trials;
  for (int i = 0; i < count; ++i) {
    const double x = rng.Uniform();
    const double y = rng.Uniform();
    trials.push_back({{{"x", x}, {"y", y}}, loss(x, y)});
  }
  return trials;
}

SearchSpace Square() {
  return {.parameters = {{.name = "x", .domain = FloatDomain{}},
                         {.name = "y", .domain = FloatDomain{}}}};
}

double ShareOf(const absl::StatusOr<std::vector<ParameterImportance>>& shares,
               const std::string& name) {
  for (const ParameterImportance& parameter : *shares) {
    if (parameter.name == name) return parameter.share;
  }
  ADD_FAILURE() << "no parameter " << name;
  return 0.0;
}

TEST(Fanova, EndsWhereInputsAreNeighbouringDoublesAndLossesAreHuge) {
  constexpr int64_t kMost = (int64_t{1} << 53) - 1;
  const SearchSpace space{
      .parameters = {{.name = "n", .domain = IntDomain{.low = 0, .high = kMost}},
                     {.name = "y", .domain = FloatDomain{}}}};
  std::vector<AssessedTrial> trials;
  for (int i = 0; i < 12; ++i) {
    const double y = i / 12.0;
    trials.push_back({{{"n", kMost - i}, {"y", y}}, i % 2 == 0 ? -1e300 * y : 1e300 * y});
  }
  const absl::StatusOr<ResampledImportance> found = ResampledFanova(space, trials);
  ASSERT_TRUE(found.ok()) << found.status();
  double sum = 0.0;
  for (const ParameterImportance& one : found->shares) sum += one.share;
  EXPECT_NEAR(sum, 1.0, 1e-9);
}

TEST(Fanova, FindsTheVarianceOfEachTerm) {
  struct Case {
    const char* name;
    Loss loss;
    double x_share;  // by the integrals of the terms' squares
  };
  const Case cases[] = {
      // Variances 9/12 and 1/12.
      {"3x + y", [](double x, double y) { return 3.0 * x + y; }, 0.9},
      {"x + y", [](double x, double y) { return x + y; }, 0.5},
      // Variance of (x - 1/2)^2 is 1/180; of y/10, 1/1200.
      {"parabola", [](double x, double y) { return (x - 0.5) * (x - 0.5) + 0.1 * y; },
       (1.0 / 180) / (1.0 / 180 + 1.0 / 1200)},
      {"x alone", [](double x, double) { return x > 0.3 ? 1.0 : 0.0; }, 1.0},
      // The marginal means are x / 2 and y / 2; what they share belongs to neither.
      {"product", [](double x, double y) { return x * y; }, 0.5},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    const auto shares = FanovaImportance(Square(), Drawn(400, test.loss));
    ASSERT_TRUE(shares.ok()) << shares.status();
    EXPECT_NEAR(ShareOf(shares, "x"), test.x_share, 0.05);
    EXPECT_NEAR(ShareOf(shares, "x") + ShareOf(shares, "y"), 1.0, 1e-12);
  }
}

TEST(Fanova, ChoicesAreTakenApart) {
  const SearchSpace space = {
      .parameters = {
          {.name = "c",
           .domain = CategoricalDomain{{std::string("a"), std::string("b"), std::string("c")}}},
          {.name = "x", .domain = FloatDomain{}}}};
  const double level[] = {0.0, 2.0, 0.0};  // variance 8/9
  Rng rng(3, 0);
  std::vector<AssessedTrial> trials;
  for (int i = 0; i < 300; ++i) {
    const auto choice = static_cast<size_t>(rng.Below(3));
    const double x = rng.Uniform();
    trials.push_back({{{"c", std::string(1, static_cast<char>('a' + choice))}, {"x", x}},
                      level[choice] + 2.0 * x});  // variance 4/12
  }
  const auto shares = FanovaImportance(space, trials);
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_NEAR(ShareOf(shares, "c"), (8.0 / 9) / (8.0 / 9 + 1.0 / 3), 0.04);
}

TEST(Fanova, LogarithmicParametersAreMeasuredOnTheirScale) {
  const SearchSpace space = {
      .parameters = {{.name = "lr", .domain = FloatDomain{.low = 1e-6, .high = 1.0, .log = true}},
                     {.name = "y", .domain = FloatDomain{}}}};
  std::vector<AssessedTrial> trials = Drawn(400, [](double x, double y) { return 3.0 * x + y; });
  for (AssessedTrial& trial : trials) {
    const double x = std::get<double>(trial.params["x"]);
    trial.params = {{"lr", std::pow(10.0, 6.0 * x - 6.0)}, {"y", trial.params["y"]}};
  }
  EXPECT_NEAR(ShareOf(FanovaImportance(space, trials), "lr"), 0.9, 0.05);
}

TEST(Fanova, AgreesWithOptunasForest) {
  int num_compared = 0;
  const nlohmann::json golden = ReadGolden("importance.json");
  for (const auto& study : golden["studies"]) {
    if (!study.contains("fanova")) continue;
    SCOPED_TRACE(study["name"].dump());
    const auto shares = FanovaImportance(SpaceOf(study["space"]), TrialsOf(study));
    ASSERT_TRUE(shares.ok()) << shares.status();
    ++num_compared;
    for (const ParameterImportance& parameter : *shares) {
      EXPECT_NEAR(parameter.share, study["fanova"][parameter.name].get<double>(), 0.05)
          << parameter.name;
    }
    EXPECT_GT(study["fanova"][shares->front().name].get<double>(), 0.5) << "the first of both";
  }
  EXPECT_EQ(num_compared, 3);
}

TEST(Fanova, IsTheSameTwiceAndLeavesOutWhatSomeTrialsLack) {
  auto trials = Drawn(50, [](double x, double y) { return x + y; });
  EXPECT_EQ(FanovaImportance(Square(), trials).value(), FanovaImportance(Square(), trials).value());
  trials[7].params.erase("y");
  EXPECT_EQ(FanovaImportance(Square(), trials).value(),
            (std::vector<ParameterImportance>{{"x", 1.0}}));
}

TEST(PartitionTree, BoxesCoverTheCubeOnceAndHoldTheirRows) {
  Rng rng(11, 0);
  RegressionData data{.inputs = {{}, {}}, .num_choices = {0, 4}, .outputs = {}};
  std::vector<size_t> rows;
  for (size_t row = 0; row < 60; ++row) {
    data.inputs[0].push_back(rng.Uniform());
    data.inputs[1].push_back(static_cast<double>(rng.Below(3)));  // the fourth choice: never
    data.outputs.push_back(rng.Uniform());
    rows.push_back(row);
  }
  const std::vector<Box> boxes = PartitionGrower(data).Grow(rows, rng);
  EXPECT_EQ(boxes.size(), 60u) << "no two rows are alike";
  double volume = 0.0;
  for (const Box& box : boxes) volume += box.extents[0].Size() * box.extents[1].Size();
  EXPECT_NEAR(volume, 1.0, 1e-12);
  for (size_t row = 0; row < rows.size(); ++row) {
    int num_holding = 0;
    for (const Box& box : boxes) {
      const double x = data.inputs[0][row];
      const bool holds = box.extents[0].low < x && x <= box.extents[0].high &&
                         box.extents[1].choices[static_cast<size_t>(data.inputs[1][row])];
      if (!holds) continue;
      ++num_holding;
      EXPECT_EQ(box.value, data.outputs[row]);
    }
    EXPECT_EQ(num_holding, 1);
  }
}

}  // namespace
}  // namespace hpo
