#include "memory/frontier/frontier.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/memory/simulated_law.h"

namespace hpo::memory {
namespace {

constexpr Bytes kMargin = MiB(500);

// A program that takes what `law` says, on GPUs of some sizes.
struct Program {
  SimulatedLaw law;
  std::vector<FrontierGpu> gpus;
  double variation = 0.0;  // part of the memory that varies

  std::vector<FrontierMeasurement> Run(const ParamMap& params) const {
    const size_t hash = std::hash<std::string>()(FormatParams(params)) % 1000;
    const double factor = 1.0 + variation * (static_cast<double>(hash) / 500.0 - 1.0);
    const Bytes required{static_cast<int64_t>(law.Need(params) * factor)};
    std::vector<FrontierMeasurement> measured;
    for (const FrontierGpu& gpu : gpus) {
      const Bytes spare = gpu.total - required;
      measured.push_back({.verdict = spare < Bytes{}      ? FrontierVerdict::kDoesNotFit
                                     : spare < gpu.margin ? FrontierVerdict::kTight
                                                          : FrontierVerdict::kFits,
                          .required = required});
    }
    return measured;
  }
};

FrontierSpace SpaceOf(const SearchSpace& space) {
  return *FrontierSpaceOf(space, {.relevant = UsualRelevant(space)});
}

void Measure(const Program& program, Frontier& frontier) {
  while (const std::optional<size_t> next = frontier.Next()) {
    frontier.Add(*next, program.gpus, program.Run(frontier.considered().configurations[*next]));
  }
}

bool Runs(FrontierVerdict verdict) { return verdict != FrontierVerdict::kDoesNotFit; }

// Configurations on each GPU for which the frontier is wrong, and those that it leaves open.
struct Mistakes {
  size_t wrong = 0;
  size_t open = 0;
};

Mistakes MistakesOf(const Program& program, const Frontier& frontier) {
  Mistakes mistakes;
  for (size_t index = 0; index < frontier.considered().configurations.size(); ++index) {
    const auto truth = program.Run(frontier.considered().configurations[index]);
    for (size_t gpu = 0; gpu < program.gpus.size(); ++gpu) {
      const FrontierVerdict verdict = frontier.Answer(index, gpu).verdict;
      const bool is_open = verdict == FrontierVerdict::kNotKnown;
      mistakes.open += is_open ? 1 : 0;
      mistakes.wrong += !is_open && Runs(verdict) != Runs(truth[gpu].verdict) ? 1 : 0;
    }
  }
  return mistakes;
}

TEST(Frontier, AFewMeasurementsAnswerForASpaceOfThousands) {
  const SearchSpace space = SizesSpace();
  struct Case {
    int kind;
    size_t most_measured;
    size_t most_open;
  };
  // The laws 3 and 5 are no sums of the fit's products: it says that it does not know.
  for (const Case& c : {Case{0, 25, 0}, Case{1, 25, 0}, Case{2, 25, 0}, Case{3, 60, 200},
                        Case{4, 30, 0}, Case{5, 60, 500}}) {
    SCOPED_TRACE(c.kind);
    const Program program{.law = SimulatedLaw(c.kind, /*seed=*/1, /*noise=*/0.0),
                          .gpus = {{GiB(2), kMargin}, {GiB(4), kMargin}}};
    Frontier frontier(space, SpaceOf(space), {.most_measurements = 60});
    ASSERT_EQ(frontier.considered().configurations.size(), 2000u);
    Measure(program, frontier);
    const Mistakes mistakes = MistakesOf(program, frontier);
    EXPECT_LE(frontier.num_measured(), c.most_measured);
    EXPECT_EQ(mistakes.wrong, 0u);
    EXPECT_LE(mistakes.open, c.most_open);
  }
}

// What torch reserves varies with rounding and fragmentation.
TEST(Frontier, MeasurementsMayVary) {
  const SearchSpace space = SizesSpace();
  const Program program{.law = SimulatedLaw(1, /*seed=*/2, /*noise=*/0.0),
                        .gpus = {{GiB(2), kMargin}, {GiB(4), kMargin}},
                        .variation = 0.02};
  Frontier frontier(space, SpaceOf(space), {.most_measurements = 60});
  Measure(program, frontier);
  const Mistakes mistakes = MistakesOf(program, frontier);
  EXPECT_LE(mistakes.wrong, 8u);
  EXPECT_LE(mistakes.open, 200u);
}

SearchSpace GridSpace(int64_t batches, int64_t layers) {
  SearchSpace space;
  space.parameters = {WholeNumber("batch", 1, batches), WholeNumber("layers", 1, layers)};
  return space;
}

TEST(Frontier, ASmallSpaceIsMeasuredWhole) {
  const SearchSpace space = GridSpace(4, 3);
  Frontier frontier(space, SpaceOf(space), {});
  std::set<size_t> taken;
  while (const std::optional<size_t> next = frontier.Next()) taken.insert(*next);
  EXPECT_EQ(taken.size(), 12u);
}

TEST(Frontier, MeasuresAllWhereAskedTo) {
  const SearchSpace space = GridSpace(6, 6);
  Frontier frontier(space, SpaceOf(space), {.measure_all = true});
  size_t count = 0;
  while (frontier.Next()) ++count;
  EXPECT_EQ(count, 36u);
  Frontier bounded(space, SpaceOf(space), {.most_measurements = 7, .measure_all = true});
  for (count = 0; bounded.Next(); ++count) {
  }
  EXPECT_EQ(count, 7u);
}

TEST(Frontier, BeginsAtTheCorners) {
  const SearchSpace space = GridSpace(6, 6);
  Frontier frontier(space, SpaceOf(space), {});
  std::set<ParamMap> corners;
  for (int i = 0; i < 4; ++i)
    corners.insert(frontier.considered().configurations[*frontier.Next()]);
  std::set<ParamMap> expected;
  for (const int64_t batch : {1, 6}) {
    for (const int64_t layers : {1, 6}) expected.insert({{"batch", batch}, {"layers", layers}});
  }
  EXPECT_EQ(corners, expected);
}

TEST(Frontier, NothingIsKnownOfWhatFailed) {
  const SearchSpace space = GridSpace(6, 6);
  const std::vector<FrontierGpu> gpus = {{GiB(100), kMargin}};
  Frontier frontier(space, SpaceOf(space), {});
  const size_t failed = *frontier.Next();
  frontier.Fail(failed);
  while (const std::optional<size_t> next = frontier.Next()) {
    frontier.Add(*next, gpus, {{.verdict = FrontierVerdict::kFits, .required = GiB(1)}});
  }
  EXPECT_TRUE(frontier.HasFailed(failed));
  for (size_t index = 0; index < 36; ++index) {
    EXPECT_EQ(frontier.Answer(index, 0).verdict,
              index == failed ? FrontierVerdict::kNotKnown : FrontierVerdict::kFits);
  }
  EXPECT_LT(frontier.num_measured(), 12u) << "far from the frontier nothing is confirmed";
}

TEST(Frontier, AFreedCacheDoesNotBendTheFit) {
  const SearchSpace space = GridSpace(12, 1);
  const std::vector<FrontierGpu> gpus = {{GiB(8), kMargin}};
  Frontier frontier(space, SpaceOf(space), {});
  while (const std::optional<size_t> next = frontier.Next()) {
    const Bytes need = *FindInt(frontier.considered().configurations[*next], "batch") * GiB(1);
    // At 9 the program still runs, as torch frees its cache.
    const bool freed = need == GiB(9);
    frontier.Add(*next, gpus,
                 {{.verdict = freed           ? FrontierVerdict::kTight
                              : need > GiB(8) ? FrontierVerdict::kDoesNotFit
                                              : FrontierVerdict::kFits,
                   .required = freed ? GiB(8) : need,
                   .freed_cache = freed}});
  }
  EXPECT_EQ(frontier.Answer(8, 0).verdict, FrontierVerdict::kTight);
}

TEST(Frontier, OrdersParametersByTheirEffect) {
  SearchSpace space = GridSpace(6, 6);
  space.parameters.push_back(Choices("kind", {std::string("a"), std::string("b")}));
  const std::vector<FrontierGpu> gpus = {{GiB(24), kMargin}};
  Frontier frontier(space, SpaceOf(space), {});
  while (const std::optional<size_t> next = frontier.Next()) {
    const ParamMap& params = frontier.considered().configurations[*next];
    const Bytes need = MiB(900) + *FindInt(params, "layers") * GiB(2) +
                       *FindInt(params, "batch") * MiB(300) +
                       (*FindString(params, "kind") == "a" ? MiB(0) : MiB(1));
    frontier.Add(
        *next, gpus,
        {{.verdict = need > GiB(24) ? FrontierVerdict::kDoesNotFit : FrontierVerdict::kFits,
          .required = need}});
  }
  EXPECT_EQ(frontier.AxesByEffect(), (std::vector<size_t>{1, 0, 2}));
}

}  // namespace
}  // namespace hpo::memory
