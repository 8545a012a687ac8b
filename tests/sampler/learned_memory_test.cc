// The sampler learns where memory ends from out-of-memory trials alone, with no estimate at all.
#include <cmath>

#include "gtest/gtest.h"
#include "sampler/factory/make_sampler.h"
#include "sampler/space/numeric_scale.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

constexpr uint64_t kSeeds = 50;

StudySpec CriteriaStudy(const std::string& sampler, uint64_t seed) {
  StudySpec study;
  study.sampler = {.type = sampler, .seed = seed};
  study.memory.policy = MemoryPolicy::kOff;
  CategoricalDomain models;
  for (const char* name : {"bert-base", "roberta-base", "minilm", "bert-large", "deberta-large"}) {
    models.choices.push_back(std::string(name));
  }
  study.space.parameters = {
      MakeParameter("model.name", models),
      MakeParameter("tok.max_length", IntDomain{.low = 128, .high = 512, .step = 32}),
      MakeParameter("train.batch_size", IntChoices({8, 12, 16, 24, 32, 48, 64})),
      MakeParameter("train.grad_accum", IntChoices({1, 2, 3, 4, 6, 8})),
      MakeParameter("train.lr", FloatDomain{.low = 1e-6, .high = 1e-4, .log = true}),
  };
  return study;
}

bool Heavy(const ParamMap& params) {
  return FindString(params, "model.name")->find("large") != std::string::npos;
}
double Length(const ParamMap& params) { return *FindDouble(params, "tok.max_length"); }
double Batch(const ParamMap& params) { return *FindDouble(params, "train.batch_size"); }

// Better with a larger model, longer texts and larger batches: quality pulls towards the region.
double Loss(const ParamMap& params) {
  const double off = std::log10(*FindDouble(params, "train.lr")) + 4.5;
  return 0.2 * off * off - (Heavy(params) ? 0.3 : 0.0) - Length(params) / 1024.0 -
         0.1 * std::log2(Batch(params));
}

using Region = std::function<bool(const ParamMap&)>;

// Share of `num_asked` suggestions for trials not yet run that lie in `region`.
double ShareIn(const Region& region, const SimulatedStudy& study, int num_asked) {
  int inside = 0;
  for (int i = 0; i < num_asked; ++i) inside += region(study.Suggest(1'000'000 + i).params);
  return static_cast<double>(inside) / num_asked;
}

// The region's share right after its tenth out-of-memory.
double ShareAfterTen(const Region& region, uint64_t seed) {
  SimulatedStudy study(CriteriaStudy("tpe", seed),
                       [&](const ParamMap& params) -> std::optional<double> {
                         if (region(params)) return std::nullopt;
                         return Loss(params);
                       });
  constexpr size_t kMaxTrials = 120;
  while (study.num_ooms() < 10 && study.trials().size() < kMaxTrials) study.RunOne();
  return ShareIn(region, study, 200);
}

void ExpectHalved(const Region& region) {
  const SimulatedStudy random(CriteriaStudy("random", 0), nullptr);
  const double share_of_random = ShareIn(region, random, 2000);
  std::vector<double> shares;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) shares.push_back(ShareAfterTen(region, seed));
  EXPECT_LT(MedianOf(shares), 0.5 * share_of_random);
}

TEST(LearnedMemory, TenOutOfMemoriesHalveTheShareOfACorner) {
  ExpectHalved([](const ParamMap& p) { return Length(p) >= 320 && Batch(p) >= 32; });
}

TEST(LearnedMemory, TenOutOfMemoriesHalveTheShareBeyondACurve) {
  ExpectHalved([](const ParamMap& p) { return Length(p) * Batch(p) > 8192; });
}

TEST(LearnedMemory, TenOutOfMemoriesHalveTheShareOfASmallCorner) {
  ExpectHalved([](const ParamMap& p) { return Length(p) * Batch(p) > 20'000; });
}

TEST(LearnedMemory, TenOutOfMemoriesHalveTheShareOfLongTexts) {
  ExpectHalved([](const ParamMap& p) { return Length(p) > 256; });
}

TEST(LearnedMemory, TenOutOfMemoriesHalveTheShareOfSomeChoicesWithLongTexts) {
  ExpectHalved([](const ParamMap& p) { return Heavy(p) && Length(p) > 256; });
}

// An out-of-memory on a small card says nothing to a large one.
TEST(LearnedMemory, IsOfTheAskingCapacity) {
  const Region region = [](const ParamMap& p) { return Length(p) > 256; };
  const auto suggestions = [&](Bytes limit_of_ooms, bool with_ooms) {
    const StudySpec study = CriteriaStudy("tpe", 3);
    const auto sampler = MakeSampler(study);
    Rng rng(1, 1);
    for (int64_t i = 0; i < 40; ++i) {
      HistoryTrial trial{.number = TrialNumber{i}, .state = TrialState::kCompleted};
      for (const Parameter& parameter : study.space.parameters) {
        trial.params[parameter.name] = DrawUniform(parameter.domain, rng);
      }
      trial.losses = {Loss(trial.params)};
      if (region(trial.params)) {
        if (!with_ooms) continue;
        trial.state = TrialState::kPruned;
        trial.losses.clear();
        trial.prune_reason = PruneReason::kOutOfMemory;
        trial.memory = {{limit_of_ooms, true, limit_of_ooms, {}}};
      }
      sampler->Observe({i + 1, trial});
    }
    std::vector<ParamMap> params;
    for (int64_t i = 0; i < 20; ++i) {
      params.push_back(
          sampler->Suggest({TrialNumber{100 + i}, study.space, GiB(16), nullptr})->params);
    }
    return params;
  };
  EXPECT_NE(suggestions(GiB(16), true), suggestions(GiB(16), false));
  EXPECT_EQ(suggestions(GiB(8), true), suggestions(GiB(8), false));
}

}  // namespace
}  // namespace hpo::sampler
