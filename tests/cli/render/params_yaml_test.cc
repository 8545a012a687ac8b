#include "cli/render/params_yaml.h"

#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

TEST(ParamsYaml, EveryValueReadsBackAsWhatItIs) {
  const Trial trial{.id = {.study = "s", .number = TrialNumber{4}},
                    .params = {{"deep", true},
                               {"model", std::string("bert-base")},
                               {"no", std::string("no")},
                               {"size", int64_t{8}},
                               {"train.lr", 3e-5},
                               {"x", 0.1234567890123}},
                    .outcome = Completed{.metrics = {{"f1", 0.5}}}};
  StudySpec study;
  study.name = "s";
  study.objectives = {{.metric = "f1"}, {.metric = "ms"}};
  const std::string one =
      "# trial #4 of s, f1 0.5, ms -\n"
      "deep: true\n"
      "model: \"bert-base\"\n"
      "no: \"no\"\n"
      "size: 8\n"
      "train.lr: 3.0e-05\n"
      "x: 0.1234567890123\n";
  EXPECT_EQ(ParamsYaml({trial}, study), one);
  EXPECT_EQ(ParamsYaml({trial, trial}, study), one + "---\n" + one);
}

}  // namespace
}  // namespace hpo::cli
