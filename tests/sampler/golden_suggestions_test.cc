// The same suggestions on every machine and with every version: tests/golden/suggestions.json.
// Where a change is meant, HPO_WRITE_GOLDEN=1 in the environment writes the file.
#include <cstdlib>
#include <fstream>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden_file.h"
#include "tests/sampler/simulated_study.h"
#include "tests/test_paths.h"

namespace hpo::sampler {
namespace {

constexpr int kGoldenTrials = 40;
constexpr Bytes kCapacity = GiB(16);

Domain Names() {
  return CategoricalDomain{{std::string("small"), std::string("large"), std::string("other")}};
}

SearchSpace RealSpace() {
  SearchSpace space;
  space.parameters = {MakeParameter("x", FloatDomain{-5.0, 10.0}),
                      MakeParameter("y", FloatDomain{1e-3, 1e3, std::nullopt, true})};
  return space;
}

SearchSpace GoldenMixedSpace() {
  SearchSpace space;
  space.parameters = {MakeParameter("model.name", Names()),
                      MakeParameter("x", FloatDomain{1e-6, 10.0, std::nullopt, true}),
                      MakeParameter("y", FloatDomain{0.0, 1.0, 0.125}),
                      MakeParameter("depth", IntDomain{.low = 1, .high = 400, .log = true}),
                      MakeParameter("train.batch_size", IntDomain{.low = 8, .high = 64, .step = 8}),
                      MakeParameter("train.grad_accum", IntDomain{.low = 1, .high = 8})};
  space.parameters[3].when = {{"model.name", {std::string("large")}}};
  return space;
}

// Of arithmetic alone, which has the same bits everywhere. Some trials fail, some run out of
// memory.
SimulatedResult Run(const ParamMap& params) {
  const double x = *FindDouble(params, "x") - 1.5;
  const double y = *FindDouble(params, "y") - 0.4;
  const double depth = static_cast<double>(FindInt(params, "depth").value_or(20)) / 100.0;
  const int64_t batch = FindInt(params, "train.batch_size").value_or(8);
  SimulatedResult result(x * x + 0.25 * y * y + (depth - 1.0) * (depth - 1.0) +
                         static_cast<double>(batch) / 64.0);
  if (batch > 48) result.loss.reset();
  if (depth > 3.0) {
    result.loss.reset();
    result.failed = true;
  }
  return result;
}

nlohmann::json SuggestionsOf(const SearchSpace& space, const std::string& sampler) {
  StudySpec study;
  study.space = space;
  study.sampler = {.type = sampler, .seed = 11};
  SimulatedStudy simulated(study, Run, kCapacity);
  nlohmann::json suggestions = nlohmann::json::array();
  for (int i = 0; i < kGoldenTrials; ++i) {
    suggestions.push_back(ParamsToJson(simulated.RunOne().params));
  }
  return suggestions;
}

TEST(GoldenSuggestions, AreTheSameOnEveryMachine) {
  nlohmann::json found;
  for (const std::string sampler : {"random", "tpe", "gp", "cma-es"}) {
    found[sampler]["real"] = SuggestionsOf(RealSpace(), sampler);
    found[sampler]["mixed"] = SuggestionsOf(GoldenMixedSpace(), sampler);
  }
  if (std::getenv("HPO_WRITE_GOLDEN") != nullptr) {
    std::ofstream file(SourcePath("tests/golden/suggestions.json"));
    file << found.dump() << "\n";
  }
  const nlohmann::json golden = ReadGolden("suggestions.json");
  for (const auto& [sampler, spaces] : golden.items()) {
    for (const auto& [space, suggestions] : spaces.items()) {
      for (size_t i = 0; i < suggestions.size(); ++i) {
        SCOPED_TRACE(testing::Message() << sampler << ", " << space << ", trial " << i);
        // Text of the shortest form that reads back as the same double.
        ASSERT_EQ(found[sampler][space][i].dump(), suggestions[i].dump());
      }
    }
  }
}

}  // namespace
}  // namespace hpo::sampler
