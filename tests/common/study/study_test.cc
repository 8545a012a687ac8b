#include "common/study/study.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/study/study_edit.h"
#include "common/study/study_json.h"
#include "common/study_file/study_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/full_values.h"

namespace hpo {
namespace {

using Change = void (*)(StudySpec&);

StudySpec Criteria() { return LoadStudy("criteria", {}).value(); }

ParamValue Text(const char* text) { return std::string(text); }

Parameter& Find(StudySpec& spec, absl::string_view name) {
  for (Parameter& parameter : spec.space.parameters) {
    if (parameter.name == name) return parameter;
  }
  ADD_FAILURE() << "no parameter " << name;
  return spec.space.parameters.front();
}

std::vector<ParamValue>& Choices(StudySpec& spec, absl::string_view name) {
  return std::get<CategoricalDomain>(Find(spec, name).domain).choices;
}

TEST(StudyJson, KeepsEveryField) {
  StudySpec spec = FullStudySpec();
  const auto again = StudyFromJson(nlohmann::json::parse(StudyToJson(spec).dump()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, spec);

  spec.budget = {.regret_bound = RegretBound{}};
  spec.warm_start.clear();
  spec.memory.headroom.reset();
  spec.memory.relevant.clear();
  const auto unlimited = StudyFromJson(nlohmann::json::parse(StudyToJson(spec).dump()));
  ASSERT_TRUE(unlimited.ok()) << unlimited.status();
  EXPECT_EQ(*unlimited, spec);
}

TEST(StudyJson, ErrorsNameTheMember) {
  const std::tuple<const char*, nlohmann::json, const char*> cases[] = {
      {"name", 3, "name: expected a string, got the integer 3"},
      {"objective", nlohmann::json::array({nlohmann::json::object()}),
       "objective: [0]: metric: missing"},
      {"trainer", nlohmann::json::object(), "trainer: task: missing"},
      {"budget", {{"trials", "many"}}, "budget: trials: expected an integer"},
      {"memory",
       {{"policy", "loose"}},
       "memory: policy: expected plan, strict or off, got the string \"loose\""},
      {"sampler", {{"type", "tpe"}}, "sampler: seed: missing"},
      {"pruner", nullptr, "pruner: expected an object, got null"},
      {"parameters", {{"kind", "int"}}, "parameters: expected an array, got an object"},
  };
  for (const auto& [key, value, expected] : cases) {
    SCOPED_TRACE(expected);
    nlohmann::json json = StudyToJson(Criteria());
    json[key] = value;
    const auto spec = StudyFromJson(json);
    ASSERT_FALSE(spec.ok());
    EXPECT_THAT(std::string(spec.status().message()), ::testing::HasSubstr(expected));
  }
}

void ExpectInvalid(std::initializer_list<std::pair<Change, const char*>> cases) {
  ASSERT_TRUE(ValidateStudy(Criteria()).ok()) << ValidateStudy(Criteria());
  for (const auto& [change, expected] : cases) {
    StudySpec spec = Criteria();
    change(spec);
    const absl::Status status = ValidateStudy(spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << expected;
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith(expected));
  }
}

TEST(ValidateStudy, ConstraintsMustRuleSomethingOut) {
  ExpectInvalid({
      {[](StudySpec& spec) { spec.constraints = {{.metric = "ms", .at_most = std::nan("")}}; },
       "constraints: at_most: expected a finite number, got nan"},
      {[](StudySpec& spec) {
         spec.constraints = {{.metric = "ms", .at_most = 1.0}, {.metric = "ms", .at_least = 0.0}};
       },
       "constraints: expected each metric once, with both its limits, got 'ms' twice"},
      {[](StudySpec& spec) { spec.constraints = {{.metric = "rmse", .at_most = 1.0}}; },
       "constraints: expected accuracy, loss, macro_f1, mcc or micro_f1 (the metrics of "
       "text-classification), got 'rmse'"},
      {[](StudySpec& spec) { spec.constraints = {{.metric = "macro_f1", .at_least = 0.9}}; },
       "constraints: expected a limit that the search does not head for anyway, as it maximizes "
       "macro_f1, got 'macro_f1 at least 0.9'"},
      {[](StudySpec& spec) {
         spec.constraints = {{.metric = "ms", .at_most = 1.0}};
         spec.budget.regret_bound = RegretBound{};
       },
       "budget.regret_bound: expected a study without limits on metrics, as it knows none, got "
       "'ms at most 1'"},
  });
  StudySpec spec = Criteria();
  spec.constraints = {{.metric = "macro_f1", .at_most = 0.9}, {.metric = "ms", .at_most = 50.0}};
  EXPECT_TRUE(ValidateStudy(spec).ok()) << ValidateStudy(spec);
  spec.constraints[0] = {.metric = "macro_f1", .at_least = 0.9};
  spec.objectives.push_back({"loss", Direction::kMinimize});
  EXPECT_TRUE(ValidateStudy(spec).ok()) << "one of several objectives";
}

TEST(ValidateStudy, ACommandNamesParametersThatThereAre) {
  ExpectInvalid(
      {{[](StudySpec& spec) {
          spec.trainer.command = {"run", "--lr={train.lrr}"};
        },
        "trainer.command: expected placeholders for parameters of the study, which are "}});
  StudySpec spec = Criteria();
  spec.trainer.command = {"run", "--lr={train.lr}", "{warmup}"};
  spec.trainer.defaults["warmup"] = 0.1;
  EXPECT_TRUE(ValidateStudy(spec).ok()) << ValidateStudy(spec);
}

TEST(ValidateStudy, NamesTheFieldAtFault) {
  ExpectInvalid({
      {[](StudySpec& spec) { spec.name = ""; }, "name: expected 1 to 100 letters"},
      {[](StudySpec& spec) { spec.name = "../up"; }, "name: expected 1 to 100 letters"},
      {[](StudySpec& spec) { spec.objectives.clear(); },
       "objective: expected at least one metric, got none"},
      {[](StudySpec& spec) { spec.objectives[0].metric = ""; },
       "objective.metric: expected a name, got nothing"},
      {[](StudySpec& spec) { spec.objectives.push_back(spec.objectives[0]); },
       "objective: expected distinct metrics, got macro_f1 twice"},
      {[](StudySpec& spec) { spec.trainer.task = "text-regression"; },
       "objective.metric: expected loss, mae, pearson or rmse (the metrics of text-regression), "
       "got "
       "'macro_f1'"},
      {[](StudySpec& spec) { spec.trainer.task = ""; }, "trainer.task: expected a name"},
      {[](StudySpec& spec) { spec.trainer.train = ""; }, "trainer.train: expected a file name"},
      {[](StudySpec& spec) { spec.trainer.validation = ""; },
       "trainer.validation: expected a file name"},
      {[](StudySpec& spec) { spec.trainer.epochs = 0; }, "trainer.epochs: expected >= 1, got 0"},
      {[](StudySpec& spec) { spec.trainer.measure_every_steps = -1; },
       "trainer.measure_every_steps: expected >= 0, got -1"},
      {[](StudySpec& spec) { spec.trainer.gpus = 0; },
       "trainer.gpus: expected 1 to 256 GPUs of one host, got 0"},
      {[](StudySpec& spec) { spec.trainer.gpus = 257; },
       "trainer.gpus: expected 1 to 256 GPUs of one host, got 257"},
      {[](StudySpec& spec) { spec.trainer.workdir = "/"; },
       "trainer.workdir: expected trainer.command too, got none"},
      {[](StudySpec& spec) { spec.trainer.command = {""}; },
       "trainer.command: expected a program first, got nothing"},
      {[](StudySpec& spec) {
         spec.trainer.command = {"x", std::string(16 << 10, 'y')};
       },
       "trainer.command: expected at most 16384 bytes, got 16387"},
      {[](StudySpec& spec) { spec.trainer.model_init = "zero"; },
       "trainer.init: expected pretrained or random, got 'zero'"},
      {[](StudySpec& spec) {
         spec.trainer.labels = {"a", "a"};
       },
       "trainer.labels: expected distinct labels, got 'a' twice"},
      {[](StudySpec& spec) { spec.trainer.defaults["train.lr"] = 0.1; },
       "trainer.defaults.train.lr: expected a parameter that the study does not search"},
      {[](StudySpec& spec) { spec.budget.trials = -1; }, "budget.trials: expected >= 0, got -1"},
      {[](StudySpec& spec) { spec.budget.no_progress = 0; },
       "budget.no_progress: expected >= 1, got 0"},
      {[](StudySpec& spec) { spec.budget.trial_wall_clock = absl::ZeroDuration(); },
       "budget.trial_wall_clock: expected > 0, got 0"},
      {[](StudySpec& spec) { spec.budget.wall_clock = -absl::Hours(1); },
       "budget.wall_clock: expected >= 0, got -1h"},
      {[](StudySpec& spec) { spec.memory.headroom = Bytes{-1}; },
       "memory.headroom: expected >= 0, got -1"},
      {[](StudySpec& spec) {
         spec.memory.relevant = {"train.lr", "train.size"};
       },
       "memory.relevant: expected parameters of the study, got 'train.size'"},
      {[](StudySpec& spec) {
         spec.memory.policy = MemoryPolicy::kOff;
         spec.memory.preflight = MemoryPreflight::kDryRun;
       },
       "memory.preflight: expected none where memory.policy is off, got dry-run"},
      {[](StudySpec& spec) { spec.space.parameters.clear(); },
       "parameters: expected at least one, got none"},
      {[](StudySpec& spec) { Choices(spec, "train.batch_size").clear(); },
       "parameters.train.batch_size: expected at least one choice"},
  });
}

TEST(ValidateStudy, NamesWhatSamplerAndPrunerCannotDo) {
  ExpectInvalid({
      {[](StudySpec& spec) { spec.sampler.type = "annealing"; },
       "sampler.type: expected auto, tpe, tpe-joint, tpe-group, tpe-univariate, gp, cma-es, "
       "random, "
       "qmc or grid, got 'annealing'"},
      {[](StudySpec& spec) { spec.sampler.type = "cma-es"; },
       "sampler.type: expected auto, tpe or gp, as cma-es needs numbers without conditions and "
       "model.name is a choice, got 'cma-es'"},
      {[](StudySpec& spec) {
         spec.sampler.type = "cma-es";
         spec.objectives.push_back({.metric = "seconds"});
       },
       "sampler.type: expected auto, tpe or random for several objectives, got 'cma-es'"},
      {[](StudySpec& spec) { spec.sampler.type = "grid"; },
       "sampler.type: expected a step or choices for train.lr, as a grid takes every value, got "},
      {[](StudySpec& spec) { spec.sampler.startup = "grid"; },
       "sampler.startup: expected random or sobol, got 'grid'"},
      {[](StudySpec& spec) {
         spec.sampler.type = "gp";
         spec.objectives.push_back({.metric = "seconds"});
       },
       "sampler.type: expected auto, tpe or random for several objectives, got 'gp'"},
      {[](StudySpec& spec) { spec.sampler.startup_trials = -1; },
       "sampler.startup_trials: expected >= 0"},
      {[](StudySpec& spec) { spec.pruner.type = "bohb"; },
       "pruner.type: expected predictive, median, "},
  });
}

TEST(ValidateStudy, RefusesBoundsAndWarmStartsThatMakeNoSense) {
  ExpectInvalid({
      {[](StudySpec& spec) { spec.budget.target = NAN; },
       "budget.target: expected a finite number, got nan"},
      {[](StudySpec& spec) { spec.budget.regret_bound = RegretBound{.gap = 0.0}; },
       "budget.regret_bound: expected auto or a number > 0, got 0"},
      {[](StudySpec& spec) { spec.budget.regret_bound = RegretBound{.gap = NAN}; },
       "budget.regret_bound: expected auto or a number > 0, got nan"},
      {[](StudySpec& spec) {
         spec.budget.regret_bound = RegretBound{};
         spec.objectives.push_back({.metric = "seconds"});
       },
       "budget.regret_bound: expected a study of one objective, got 2 objectives"},
      {[](StudySpec& spec) {
         spec.warm_start = {"earlier"};
         spec.sampler.type = "random";
       },
       "warm_start: expected sampler.type auto, tpe or gp, got 'random'"},
      {[](StudySpec& spec) {
         spec.warm_start = {"earlier"};
         spec.objectives.push_back({.metric = "seconds"});
       },
       "warm_start: expected a study of one objective, got 2 objectives"},
      {[](StudySpec& spec) { spec.warm_start = {spec.name}; },
       "warm_start: expected an earlier study, got this study"},
      {[](StudySpec& spec) {
         spec.warm_start = {"a", "b", "a"};
       },
       "warm_start: expected distinct studies, got 'a' twice"},
      {[](StudySpec& spec) { spec.warm_start = {""}; },
       "warm_start: expected names of studies, got ''"},
  });
}

TEST(ValidateStudy, LeavesDataToTrainersOfTheUsersOwn) {
  StudySpec spec = Criteria();
  spec.trainer.task = "my-task";
  spec.trainer.train.clear();
  spec.trainer.validation.clear();
  EXPECT_TRUE(ValidateStudy(spec).ok()) << ValidateStudy(spec);
  spec.trainer = Criteria().trainer;
  spec.objectives[0].metric = "area_under_curve";
  EXPECT_TRUE(ValidateStudy(spec).ok()) << ValidateStudy(spec);
}

TEST(MergeChangedStudy, AStudyKeepsWhatItStartedFrom) {
  StudySpec stored = Criteria();
  stored.warm_start = {"first"};
  StudySpec file = stored;
  file.warm_start = {"second"};
  const absl::Status refused = MergeChangedStudy(stored, file).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), ::testing::StartsWith("warm_start: stored "));
  file = stored;
  file.budget.regret_bound = RegretBound{.gap = 0.01};
  const auto merged = MergeChangedStudy(stored, file);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->budget.regret_bound, RegretBound{.gap = 0.01});
}

TEST(MergeChangedStudy, TakesBudgetAndAddedChoices) {
  const StudySpec stored = Criteria();
  StudySpec file = stored;
  file.budget = {.trials = 200};
  Choices(file, "train.batch_size") = {int64_t{128}, int64_t{64}, int64_t{48}, int64_t{32},
                                       int64_t{24},  int64_t{16}, int64_t{12}, int64_t{8}};
  Choices(file, "model.name").push_back(Text("my-own"));
  file.heavy_models = {"my-own"};
  file.space.model_facts["my-own"] = {{"model.class", Text("heavy")}};
  const auto merged = MergeChangedStudy(stored, file);
  ASSERT_TRUE(merged.ok()) << merged.status();

  StudySpec expected = stored;
  expected.budget = {.trials = 200};
  Choices(expected, "train.batch_size").push_back(int64_t{128});  // stored ones keep their order
  Choices(expected, "model.name").push_back(Text("my-own"));
  expected.heavy_models = {"my-own"};
  expected.space.model_facts["my-own"] = {{"model.class", Text("heavy")}};
  EXPECT_EQ(*merged, expected);
}

TEST(MergeChangedStudy, OrderIsNoDifference) {
  const StudySpec stored = Criteria();
  StudySpec file = stored;
  std::swap(file.space.parameters[3], file.space.parameters[5]);
  std::swap(Choices(file, "model.name")[0], Choices(file, "model.name")[1]);
  const auto merged = MergeChangedStudy(stored, file);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(*merged, stored);
}

TEST(MergeChangedStudy, KeepsFactsThatWorkersCompleted) {
  StudySpec stored = Criteria();
  stored.space.model_facts["all-minilm-l6-v2"]["model.class"] = Text("heavy");
  const auto merged = MergeChangedStudy(stored, Criteria());
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(*merged, stored);
}

TEST(MergeChangedStudy, NamesTheFirstFieldThatMayNotChange) {
  const std::pair<Change, const char*> cases[] = {
      {[](StudySpec& spec) { std::get<FloatDomain>(Find(spec, "train.lr").domain).low = 1e-5; },
       "parameters.train.lr.low: stored 1e-06, file has 1e-05"},
      {[](StudySpec& spec) { Find(spec, "seed").modelled = true; },
       "parameters.seed.model: stored false, file has true"},
      {[](StudySpec& spec) { Find(spec, "train.lr").default_value.reset(); },
       "parameters.train.lr.default: stored 5e-05, file has nothing"},
      {[](StudySpec& spec) { Choices(spec, "train.grad_accum").pop_back(); },
       "parameters.train.grad_accum.choices: stored [1,2,3,4,6,8], file has [1,2,3,4,6]"},
      {[](StudySpec& spec) { Find(spec, "seed").domain = FloatDomain{}; },
       "parameters.seed.high: stored 65535, file has 1"},
      {[](StudySpec& spec) { spec.space.parameters.pop_back(); }, "parameters.seed: stored {"},
      {[](StudySpec& spec) {
         spec.space.parameters.push_back({.name = "head.layers", .domain = IntDomain{}});
       },
       "parameters.head.layers: stored nothing, file has {"},
      {[](StudySpec& spec) { std::get<IntDomain>(spec.space.narrowings[0].domain).high = 512; },
       "constraints[0].high: stored 384, file has 512"},
      {[](StudySpec& spec) { spec.space.narrowings.clear(); }, "constraints: stored [{"},
      {[](StudySpec& spec) { spec.objectives[0].direction = Direction::kMinimize; },
       "objective[0].direction: stored \"maximize\", file has \"minimize\""},
      {[](StudySpec& spec) { spec.trainer.epochs = 4; }, "trainer.epochs: stored 3, file has 4"},
      {[](StudySpec& spec) { spec.trainer.defaults["x"] = 0.5; },
       "trainer.defaults.x: stored nothing, file has 0.5"},
      {[](StudySpec& spec) { spec.memory.policy = MemoryPolicy::kStrict; },
       "memory.policy: stored \"plan\", file has \"strict\""},
      {[](StudySpec& spec) { spec.memory.relevant = {"train.lr"}; },
       "memory.relevant: stored nothing, file has [\"train.lr\"]"},
      {[](StudySpec& spec) { spec.sampler.seed = 5; }, "sampler.seed: stored 0, file has 5"},
      {[](StudySpec& spec) { spec.pruner.type = "none"; },
       "pruner.type: stored \"predictive\", file has \"none\""},
      {[](StudySpec& spec) { spec.name = "other"; },
       "name: stored \"criteria\", file has \"other\""},
      // A stored model cannot become heavy.
      {[](StudySpec& spec) { spec.heavy_models = {"roberta-base"}; },
       "heavy_models: stored [], file has [\"roberta-base\"]"},
  };
  for (const auto& [change, expected] : cases) {
    SCOPED_TRACE(expected);
    StudySpec file = Criteria();
    change(file);
    const absl::Status status = MergeChangedStudy(Criteria(), file).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith(expected));
  }
}

}  // namespace
}  // namespace hpo
