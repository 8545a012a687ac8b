#include "common/study_file/study_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/study/study_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using ::testing::HasSubstr;

// Lines 1 to 5 of every file below; its own text starts in line 6.
constexpr char kHead[] =
    "name: mine\n"
    "objective: {metric: macro_f1, direction: maximize}\n"
    "trainer:\n"
    "  train: a.jsonl\n"
    "  validation: b.jsonl\n";

absl::StatusOr<StudySpec> ParseAfterHead(const std::string& text) {
  return ParseStudyFile(absl::StrCat(kHead, text), "my.yaml", {});
}

// Sets environment variables for one test, and puts back what was there.
class ScopedEnvironment {
 public:
  void Set(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    before_.emplace(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    setenv(name.c_str(), value.c_str(), 1);
  }
  ~ScopedEnvironment() {
    for (const auto& [name, value] : before_) {
      if (value.has_value()) {
        setenv(name.c_str(), value->c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

constexpr char kEverything[] = R"(
name: everything
objective:
  - {metric: macro_f1, direction: maximize}
  - {metric: loss, direction: minimize}
trainer:
  task: text-classification
  train: train.csv
  validation: /data/valid.csv
  epochs: 5
  init: random
  measure_every_steps: 50
  labels: [no, "yes", 3]
  defaults: {train.weight_decay: 0.01, train.warmup: 0, train.bias: true, note: "7"}
budget: {trials: 20, wall_clock: 1h30m, trial_wall_clock: 20m, no_progress: 15,
         failures_in_a_row: 2, failed_share: 0.25}
memory: {policy: strict, headroom: 512MiB, allow_checkpointing: true, allow_lower_precision: true, relevant: [tok.max_length]}
sampler: {type: random, seed: 18446744073709551615, startup_trials: 3, startup: sobol}
pruner: {type: none, startup_trials: 2, warmup_steps: 10, interval_steps: 4}
heavy_models: [small]
parameters:
  train.momentum: {float: [0, 0.9], step: 0.1, default: 0, when: {train.optimizer: sgd}}
  train.optimizer: {choices: [adamw, sgd], default: sgd}
  model.name: {choices: [small, bert-large-uncased]}
  train.lr: {float: [1e-6, 1.0e-4], log: true}
  head.dropout: {choices: [0, 0.1, 0.5]}
  tok.max_length: {int: [64, 512], step: 64}
  seed: {int: [1, 9], model: false}
constraints:
  - when: {model.class: heavy, head.dropout: [0, 0.1]}
    set: {tok.max_length: {int: [64, 256]}, train.lr: {float: [1e-6, 1e-5]}}
)";

TEST(StudyFile, ReadsEveryFieldOfAStudy) {
  const auto spec = ParseStudyFile(kEverything, "my.yaml", {});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "everything");
  EXPECT_EQ(spec->objectives, (std::vector<Objective>{{"macro_f1", Direction::kMaximize},
                                                      {"loss", Direction::kMinimize}}));
  EXPECT_EQ(spec->trainer, (TrainerSpec{.task = "text-classification",
                                        .train = "train.csv",
                                        .validation = "/data/valid.csv",
                                        .epochs = 5,
                                        .model_init = "random",
                                        .measure_every_steps = 50,
                                        .labels = {"no", "yes", "3"},
                                        .defaults = {{"train.weight_decay", 0.01},
                                                     {"train.warmup", int64_t{0}},
                                                     {"train.bias", true},
                                                     {"note", std::string("7")}}}));
  EXPECT_EQ(spec->budget, (Budget{.trials = 20,
                                  .wall_clock = absl::Minutes(90),
                                  .trial_wall_clock = absl::Minutes(20),
                                  .no_progress = 15,
                                  .failures_in_a_row = 2,
                                  .failed_share = 0.25}));
  EXPECT_EQ(spec->memory, (MemorySpec{.policy = MemoryPolicy::kStrict,
                                      .headroom = MiB(512),
                                      .allow_checkpointing = true,
                                      .allow_lower_precision = true,
                                      .relevant = {"tok.max_length"}}));
  EXPECT_EQ(
      spec->sampler,
      (SamplerSpec{.type = "random", .seed = UINT64_MAX, .startup_trials = 3, .startup = "sobol"}));
  EXPECT_EQ(
      spec->pruner,
      (PrunerSpec{.type = "none", .startup_trials = 2, .warmup_steps = 10, .interval_steps = 4}));
  EXPECT_EQ(spec->heavy_models, std::vector<std::string>{"small"});
}

TEST(StudyFile, ChoicesAreScalarsOfAnyType) {
  const auto spec = ParseAfterHead(R"(parameters:
  depth: {choices: [null, 5, 10], default: null}
  features: {choices: [sqrt, log2, 1, 0.5]}
  odd: {choices: [true, 1, "1", ~, "null"]}
  real: {choices: [1, 2.5]}
  leaves: {int: [2, 9], when: {depth: null}}
  width: {int: [2, 9], when: {odd: ["null", 1.0]}}
constraints:
  - when: {depth: null}
    set: {features: {choices: [sqrt, 1]}}
)");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto choices = [&spec](const char* name) {
    return std::get<CategoricalDomain>(spec->space.Find(name)->domain).choices;
  };
  using Values = std::vector<ParamValue>;
  EXPECT_EQ(choices("depth"), (Values{Null(), int64_t{5}, int64_t{10}}));
  EXPECT_EQ(spec->space.Find("depth")->default_value, ParamValue(Null()));
  EXPECT_EQ(choices("features"),
            (Values{std::string("sqrt"), std::string("log2"), int64_t{1}, 0.5}));
  EXPECT_EQ(choices("odd"),
            (Values{true, int64_t{1}, std::string("1"), Null(), std::string("null")}));
  EXPECT_EQ(choices("real"), (Values{1.0, 2.5}));
  EXPECT_EQ(spec->space.Find("leaves")->when, (std::vector<Condition>{{"depth", {Null()}}}));
  EXPECT_EQ(spec->space.Find("width")->when,
            (std::vector<Condition>{{"odd", {std::string("null"), int64_t{1}}}}));
  EXPECT_EQ(spec->space.narrowings.front().domain,
            Domain(CategoricalDomain{{std::string("sqrt"), int64_t{1}}}));
  const auto stored = StudyFromJson(nlohmann::json::parse(StudyToJson(*spec).dump()));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(*stored, *spec);
}

TEST(StudyFile, AModelsShortNameHasItsFacts) {
  const auto spec = ParseAfterHead(
      "heavy_models: [camembert-base]\n"
      "parameters:\n  model.name: {choices: [bert-large, camembert, bert-base-uncased]}\n");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::pair<const char*, const char*> cases[] = {
      {"bert-large", "model.class=heavy model.family=bert"},
      {"camembert", "model.class=heavy model.family=camembert"},
      {"bert-base-uncased", "model.class=base model.family=bert"}};
  for (const auto& [model, facts] : cases) {
    ASSERT_TRUE(spec->space.model_facts.contains(model)) << model;
    EXPECT_EQ(FormatParams(spec->space.model_facts.at(model)), facts) << model;
  }
}

TEST(StudyFile, AConditionMayNameAModelShorterOrLongerThanItsChoice) {
  const std::pair<const char*, const char*> cases[] = {{"bert-large-uncased", "bert-large"},
                                                       {"bert-large", "bert-large-uncased"}};
  for (const auto& [choice, named] : cases) {
    SCOPED_TRACE(choice);
    const auto spec =
        ParseAfterHead(absl::StrCat("parameters:\n  model.name: {choices: [roberta-base, ", choice,
                                    "]}\n  n: {int: [1, 5], when: {model.name: ", named, "}}\n"));
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->space.Find("n")->when,
              (std::vector<Condition>{{"model.name", {ParamValue(std::string(choice))}}}));
  }
}

TEST(StudyFile, AProgramOfTheStudysOwnNeedsNoTask) {
  const StudySpec spec = *ParseStudyFile(
      "name: s\nobjective: {metric: m, direction: minimize}\n"
      "trainer: {command: [python, \"{x}\"], workdir: there}\nparameters: {x: {int: [1, 2]}}\n",
      "s.yaml", {});
  EXPECT_EQ(spec.trainer.task, "custom");
  EXPECT_THAT(spec.trainer.command, ::testing::ElementsAre("python", "{x}"));
  EXPECT_EQ(spec.trainer.workdir, "there");
}

TEST(StudyFile, ACommandMayBeOneTextForTheShell) {
  const auto command = [](const std::string& text) {
    return ParseStudyFile(
        absl::StrCat("name: s\nobjective: {metric: m, direction: minimize}\n",
                     "trainer:\n  command: ", text, "\nparameters: {x: {int: [1, 2]}}\n"),
        "s.yaml", {});
  };
  EXPECT_THAT(command("|\n    a {x} \\\n      b\n")->trainer.command,
              ::testing::ElementsAre("/bin/sh", "-c", "a {x} \\\n  b\n"));
  EXPECT_THAT(std::string(command("\" \"").status().message()), HasSubstr("expected a command"));
}

TEST(StudyFile, ReadsATargetAndTakesTheOverridesInstead) {
  const std::string yaml =
      "name: again\nobjective: {metric: macro_f1, direction: maximize}\n"
      "trainer: {train: a.csv, validation: b.csv}\nbudget: {target: 0.9}\n"
      "parameters: {n: {int: [1, 5]}}\n";
  const auto by_file = ParseStudyFile(yaml, "my.yaml", {});
  ASSERT_TRUE(by_file.ok()) << by_file.status();
  EXPECT_EQ(by_file->budget, Budget{.target = 0.9});
  StudyOverrides overrides;
  overrides.target = 0.5;
  EXPECT_EQ(ParseStudyFile(yaml, "my.yaml", overrides)->budget, Budget{.target = 0.5});
}

TEST(StudyFile, ReadsRegretBoundsAndWarmStarts) {
  const auto read = [](const std::string& bound) {
    return ParseStudyFile(
        absl::StrCat("name: again\nobjective: {metric: macro_f1, direction: maximize}\n"
                     "trainer: {train: a.csv, validation: b.csv}\nbudget: {regret_bound: ",
                     bound, "}\nwarm_start: [first, second]\nparameters: {n: {int: [1, 5]}}\n"),
        "my.yaml", {});
  };
  const auto by_gap = read("0.005");
  ASSERT_TRUE(by_gap.ok()) << by_gap.status();
  EXPECT_EQ(by_gap->budget, (Budget{.regret_bound = RegretBound{.gap = 0.005}}));
  EXPECT_EQ(by_gap->warm_start, (std::vector<std::string>{"first", "second"}));
  const auto by_noise = read("auto");
  ASSERT_TRUE(by_noise.ok()) << by_noise.status();
  EXPECT_EQ(by_noise->budget, Budget{.regret_bound = RegretBound{}});
}

TEST(StudyFile, ReadsEveryFieldOfASpace) {
  const auto spec = ParseStudyFile(kEverything, "my.yaml", {});
  ASSERT_TRUE(spec.ok()) << spec.status();
  // Parents first: momentum waits for the optimizer, what is narrowed for what narrows it.
  std::vector<std::string> names;
  for (const Parameter& parameter : spec->space.parameters) names.push_back(parameter.name);
  EXPECT_THAT(names, ::testing::ElementsAre("train.optimizer", "train.momentum", "model.name",
                                            "head.dropout", "train.lr", "tok.max_length", "seed"));
  const Parameter& momentum = *spec->space.Find("train.momentum");
  EXPECT_EQ(momentum.domain, Domain(FloatDomain{.low = 0.0, .high = 0.9, .step = 0.1}));
  EXPECT_EQ(momentum.default_value, ParamValue(0.0));
  EXPECT_EQ(momentum.when,
            (std::vector<Condition>{{"train.optimizer", {ParamValue(std::string("sgd"))}}}));
  EXPECT_EQ(spec->space.Find("head.dropout")->domain, Domain(CategoricalDomain{{0.0, 0.1, 0.5}}));
  EXPECT_FALSE(spec->space.Find("seed")->modelled);

  ASSERT_EQ(spec->space.narrowings.size(), 2u);
  const Narrowing& length = spec->space.narrowings[0];
  EXPECT_EQ(length.domain, Domain(IntDomain{.low = 64, .high = 256, .step = 64}));
  EXPECT_EQ(length.when,
            (std::vector<Condition>{{"model.class", {ParamValue(std::string("heavy"))}},
                                    {"head.dropout", {0.0, 0.1}}}));
  EXPECT_EQ(spec->space.narrowings[1].domain,
            Domain(FloatDomain{.low = 1e-6, .high = 1e-5, .log = true}));

  // Listed, and known to have 335 million parameters.
  EXPECT_EQ(spec->space.model_facts.at("small").at("model.class"),
            ParamValue(std::string("heavy")));
  EXPECT_EQ(spec->space.model_facts.at("bert-large-uncased").at("model.class"),
            ParamValue(std::string("heavy")));
}

TEST(StudyFile, LeavesDefaultsWhereTheFileSaysNothing) {
  const auto spec = ParseAfterHead("parameters: {lr: {float: [0.1, 1]}}\n");
  ASSERT_TRUE(spec.ok()) << spec.status();
  StudySpec expected;
  expected.name = "mine";
  expected.objectives = {{"macro_f1", Direction::kMaximize}};
  expected.trainer.train = "a.jsonl";
  expected.trainer.validation = "b.jsonl";
  expected.space.parameters = {{.name = "lr", .domain = FloatDomain{.low = 0.1, .high = 1.0}}};
  EXPECT_EQ(*spec, expected);
}

// A text after kHead, and what a line of the error for it starts with.
using BadFile = std::pair<const char*, const char*>;

void ExpectErrors(std::initializer_list<BadFile> files) {
  for (const auto& [text, expected] : files) {
    SCOPED_TRACE(text);
    const auto spec = ParseAfterHead(text);
    ASSERT_FALSE(spec.ok());
    EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
    const std::vector<std::string> lines = absl::StrSplit(spec.status().message(), '\n');
    EXPECT_THAT(lines, ::testing::Contains(::testing::StartsWith(expected)));
  }
}

TEST(StudyFile, NamesThePlaceOfKeysOfNoMeaning) {
  ExpectErrors({
      {"  epoch: 3\n", "my.yaml:6:3: trainer.epoch: unknown key 'epoch'; did you mean 'epochs'?"},
      {"wibble: 3\n", "my.yaml:6:1: wibble: unknown key 'wibble'; expected one of name, objective"},
      {"name: again\n", "my.yaml:6:1: expected each key once, got 'name' as in line 1"},
      {"  train: c\n", "my.yaml:6:3: trainer: expected each key once, got 'train' as in line 4"},
      {"? [1]\n: 2\n", "my.yaml:6:3: expected a key that is text, got a list"},
      {"", "my.yaml:1:1: expected a key 'parameters', got none"},
  });
}

TEST(StudyFile, NamesThePlaceOfTextThatIsNoYaml) {
  ExpectErrors({
      {"budget: {trials: 1\n", "my.yaml:"},
      {"\tbudget: 1\n", "my.yaml:6:1: expected YAML: "},
      {"---\nname: two\n", "my.yaml:6:1: expected the end of the one YAML document, got more"},
  });
}

TEST(StudyFile, NamesThePlaceOfValuesOfAnotherType) {
  ExpectErrors({
      {"budget: 3\n", "my.yaml:6:9: budget: expected a mapping, got '3'"},
      {"budget: {trials: many}\nsampler: {type: tpe}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:18: budget.trials: expected an integer, got 'many'"},
      {"budget:\n", "my.yaml:6:1: budget: expected a mapping, got nothing"},
      {"budget: {trials: many}\n", "my.yaml:6:18: budget.trials: expected an integer, got 'many'"},
      {"budget: {trials: \"3\"}\n", "my.yaml:6:18: budget.trials: expected an integer, got '3'"},
      {"budget: {trials: 1.5}\n", "my.yaml:6:18: budget.trials: expected an integer, got '1.5'"},
      {"budget: {wall_clock: 8}\n",
       "my.yaml:6:22: budget.wall_clock: expected a duration such as 8h, 30m or 90s, got '8'"},
      {"budget: {wall_clock: -8h}\n", "my.yaml:6:22: budget.wall_clock: expected a duration"},
      {"budget: {wall_clock: inf}\n", "my.yaml:6:22: budget.wall_clock: expected a duration"},
      {"memory: {headroom: lots}\n", "my.yaml:6:20: memory.headroom: auto, or expected a size"},
      {"memory: {policy: planned}\n",
       "my.yaml:6:18: memory.policy: expected plan, strict or off, got 'planned'"},
      {"memory: {allow_checkpointing: 1}\n",
       "my.yaml:6:31: memory.allow_checkpointing: expected true or false, got '1'"},
      {"sampler: {seed: -1}\n", "my.yaml:6:17: sampler.seed: expected an integer >= 0, got '-1'"},
      {"  labels: yes\n", "my.yaml:6:11: trainer.labels: expected a list, got 'yes'"},
      {"  labels: [a, [b]]\n", "my.yaml:6:15: trainer.labels[1]: expected text, got a list"},
      {"  defaults: {lr: [1]}\n",
       "my.yaml:6:18: trainer.defaults.lr: expected a value, got a list"},
  });
}

TEST(StudyFile, NamesThePlaceOfBadParameters) {
  ExpectErrors({
      {"parameters: [lr]\n", "my.yaml:6:13: parameters: expected a mapping, got a list"},
      {"parameters:\n  lr: 3\n", "my.yaml:7:7: parameters.lr: expected a mapping, got '3'"},
      {"parameters:\n  lr: {}\n",
       "my.yaml:7:7: parameters.lr: expected one of int, float and choices, got none"},
      {"parameters:\n  lr: {step: 2, log: true}\n",
       "my.yaml:7:7: parameters.lr: expected one of int, float and choices, got none"},
      {"parameters:\n  lr: {int: [1, 2], choices: [1]}\n",
       "my.yaml:7:7: parameters.lr: expected one of int, float and choices, got several"},
      {"parameters:\n  lr: {flot: [1, 2]}\n",
       "my.yaml:7:8: parameters.lr.flot: unknown key 'flot'; did you mean 'float'?"},
      {"parameters:\n  lr: {float: [0.1, 0.1]}\n",
       "my.yaml:7:7: parameters.lr: expected low < high, got [0.1, 0.1]"},
      {"parameters:\n  lr: {float: [1]}\n",
       "my.yaml:7:15: parameters.lr.float: expected [low, high], got 1 values"},
      {"parameters:\n  lr: {float: [a, b]}\n",
       "my.yaml:7:16: parameters.lr.float[0]: expected a number, got 'a'"},
      {"parameters:\n  lr: {float: [.nan, 1]}\n",
       "my.yaml:7:16: parameters.lr.float[0]: expected a number, got '.nan'"},
      {"parameters:\n  n: {int: [5, 1]}\n",
       "my.yaml:7:6: parameters.n: expected low <= high, got [5, 1]"},
      {"parameters:\n  n: {int: [-9223372036854775808, 0]}\n",
       "my.yaml:7:6: parameters.n: expected bounds within -2^53 and 2^53, got "
       "[-9223372036854775808, 0]"},
      {"parameters:\n  n: {int: [1, 5.5]}\n",
       "my.yaml:7:16: parameters.n.int[1]: expected an integer, got '5.5'"},
      {"parameters:\n  n: {int: [1, 5], default: 7}\n",
       "my.yaml:7:6: parameters.n: default: expected a value in [1, 5], got 7"},
      {"parameters:\n  n: {choices: []}\n",
       "my.yaml:7:6: parameters.n: expected at least one choice, got none"},
      {"parameters:\n  n: {choices: [1, a, 1.0]}\n",
       "my.yaml:7:6: parameters.n: expected distinct choices, got 1 twice (as numbers, 1 and 1.0 "
       "are equal)"},
      {"parameters:\n  n: {choices: [null, a, ~]}\n",
       "my.yaml:7:6: parameters.n: expected distinct choices, got null twice"},
      {"parameters:\n  n n: {choices: [1]}\n",
       "my.yaml:7:8: parameters.n n: expected a name of letters"},
      {"parameters: {}\n", "my.yaml:6:13: parameters: expected at least one, got none"},
  });
}

TEST(StudyFile, NamesThePlaceOfBadConditions) {
  ExpectErrors({
      {"parameters:\n  n: {int: [1, 5], when: {m: 1}}\n",
       "my.yaml:7:30: parameters.n.when.m: unknown parameter 'm'; expected one of model.class"},
      {"parameters:\n  n: {int: [1, 5], when: {}}\n",
       "my.yaml:7:26: parameters.n.when: expected at least one condition, got none"},
      {"parameters:\n  n: {int: [1, 5], when: {n: 1}}\n",
       "my.yaml:7:6: parameters.n: expected conditions without a circle"},
      {"parameters:\n  m: {choices: [a]}\n  n: {int: [1, 5], when: {m: [a, b]}}\n",
       "my.yaml:8:34: parameters.n.when.m[1]: expected a value in {a}, got 'b'"},
      {"parameters:\n  n: {int: [1, 5], when: {model.class: large}}\n",
       "my.yaml:7:40: parameters.n.when.model.class: expected heavy or base, got 'large'"},
      {"parameters:\n  n: {int: [1, 5], when: {model.class: heavy}}\n",
       "my.yaml:7:6: parameters.n: when: expected a parameter that comes before, got "
       "'model.class'"},
  });
}

TEST(StudyFile, NamesThePlaceOfBadConstraints) {
  ExpectErrors({
      {"constraints: {}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:14: constraints: expected a list, got a mapping"},
      {"parameters: {n: {int: [1, 5]}}\nconstraints:\n  - when: {n: 1}\n",
       "my.yaml:8:5: constraints[0]: expected a key 'set', got none"},
      {"parameters: {n: {int: [1, 5]}, m: {int: [1, 5]}}\nconstraints:\n  - when: {n: 1}\n    set: "
       "{k: {int: [1, 2]}}\n",
       "my.yaml:9:14: constraints[0].set.k: unknown parameter 'k'; expected one of n, m"},
      {"parameters: {n: {int: [1, 5]}, m: {int: [1, 5]}}\nconstraints:\n  - when: {n: 1}\n    set: "
       "{m: {int: [0, 2]}}\n",
       "my.yaml:9:14: constraints: m: expected a part of [1, 5], got [0, 2]"},
      {"parameters: {n: {int: [1, 5]}, m: {int: [1, 5]}}\nconstraints:\n  - when: {n: 1}\n    set: "
       "{m: {int: [2, 1]}}\n",
       "my.yaml:9:14: constraints: m: expected low <= high, got [2, 1]"},
  });
}

TEST(StudyFile, ReadsLimitsOnMetricsBesideNarrowings) {
  const auto spec = ParseStudyFile(std::string(kEverything) +
                                       "  - {metric: latency_ms, at_most: 50}\n  - {metric: "
                                       "recall, at_least: 0.5, at_most: 1}\n",
                                   "my.yaml", {});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->constraints,
            (std::vector<MetricConstraint>{{.metric = "latency_ms", .at_most = 50.0},
                                           {.metric = "recall", .at_least = 0.5, .at_most = 1.0}}));
  EXPECT_EQ(spec->space.narrowings.size(), 2u);
}

TEST(StudyFile, NamesThePlaceOfBadLimitsOnMetrics) {
  ExpectErrors({
      {"parameters: {n: {int: [1, 5]}}\nconstraints:\n  - {metric: ms}\n",
       "my.yaml:8:5: constraints[0]: expected at_least, at_most or both for ms, got neither"},
      {"parameters: {n: {int: [1, 5]}}\nconstraints:\n  - {at_most: 5}\n",
       "my.yaml:8:5: constraints[0]: expected a key 'metric', got none"},
      {"parameters: {n: {int: [1, 5]}}\nconstraints:\n  - {metric: ms, at_most: fast}\n",
       "my.yaml:8:27: constraints[0].at_most: expected a number, got 'fast'"},
      {"parameters: {n: {int: [1, 5]}}\nconstraints:\n  - {metric: ms, at_most: .nan}\n",
       "my.yaml:8:27: constraints[0].at_most: expected a number, got '.nan'"},
      {"parameters: {n: {int: [1, 5]}}\nconstraints:\n  - {metric: ms, at_least: 5, at_most: 3}\n",
       "my.yaml:8:5: constraints[0]: expected at_least <= at_most for ms, got 5 and 3"},
      {"parameters: {n: {int: [1, 5]}}\nconstraints:\n  - {metric: ms, below: 3, at_most: 3}\n",
       "my.yaml:8:18: constraints[0].below: unknown key 'below'"},
      {"parameters: {n: {int: [1, 5]}}\nconstraints:\n  - {metric: ms, at_most: 5}\n  - {metric: "
       "ms, at_least: 3}\n",
       "my.yaml:8:3: constraints: expected each metric once, with both its limits, got 'ms' twice"},
  });
}

TEST(StudyFile, NamesThePlaceOfStudiesThatMakeNoSense) {
  ExpectErrors({
      {"  epochs: 0\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:11: trainer.epochs: expected >= 1, got 0"},
      {"budget: {no_progress: 0}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:23: budget.no_progress: expected >= 1, got 0"},
      {"budget: {failures_in_a_row: -1}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:29: budget.failures_in_a_row: expected >= 0, got -1"},
      {"budget: {failed_share: 1}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:24: budget.failed_share: expected a share from 0 to less than 1, got 1"},
      {"budget: {regret_bound: tight}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:24: budget.regret_bound: expected auto or a number, got 'tight'"},
      {"budget: {regret_bound: -1}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:24: budget.regret_bound: expected auto or a number > 0, got -1"},
      {"warm_start: earlier\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:13: warm_start: expected a list, got 'earlier'"},
      {"  init: scratch\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:9: trainer.init: expected pretrained or random, got 'scratch'"},
      {"sampler: {type: annealing}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:17: sampler.type: expected auto, tpe, tpe-joint, tpe-group, tpe-univariate, gp, "
       "cma-es, random, qmc or grid, got "
       "'annealing'"},
      {"pruner: {type: bohb, eta: 3}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:22: pruner.eta: unknown key 'eta'"},
      {"pruner: {type: bohb, startup_trials: 3}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:16: pruner.type: expected predictive, median, percentile, threshold, patient, "
       "asha, "
       "hyperband, wilcoxon or none, got 'bohb'"},
      {"pruner: {type: asha, percentile: 3}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:22: pruner.percentile: unknown key 'percentile'"},
      {"pruner: {type: asha, min_resource: few}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:36: pruner.min_resource: expected an integer, got 'few'"},
      {"pruner: {type: percentile, percentile: 101}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:40: pruner.percentile: expected between 0 and 100, got 101"},
      {"  defaults: {n: 3}\nparameters: {n: {int: [1, 5]}}\n",
       "my.yaml:6:17: trainer.defaults.n: expected a parameter that the study does not search"},
  });
}

TEST(StudyFile, ReadsEveryPruner) {
  const std::pair<const char*, PrunerSpec> cases[] = {
      {"{type: median, min_trials: 3}", {.type = "median", .min_trials = 3}},
      {"{type: percentile, percentile: 12.5, interval_steps: 2}",
       {.type = "percentile", .interval_steps = 2, .percentile = 12.5}},
      {"{type: threshold, lower: -1, upper: 2.5}",
       {.type = "threshold", .lower = -1.0, .upper = 2.5}},
      {"{type: patient, patience: 2, min_delta: 0.1}",
       {.type = "patient", .patience = 2, .min_delta = 0.1}},
      {"{type: patient, wrapped: median, startup_trials: 1}",
       {.type = "patient", .startup_trials = 1, .wrapped = "median"}},
      {"{type: asha, min_resource: auto, reduction_factor: 3}",
       {.type = "asha", .reduction_factor = 3}},
      {"{type: asha, min_resource: 4, min_early_stopping_rate: 1, bootstrap_count: 2}",
       {.type = "asha", .min_resource = 4, .min_early_stopping_rate = 1, .bootstrap_count = 2}},
      {"{type: hyperband, min_resource: 2, max_resource: 54}",
       {.type = "hyperband", .min_resource = 2, .max_resource = 54}},
      {"{type: wilcoxon, p_threshold: 0.05, startup_steps: 4}",
       {.type = "wilcoxon", .p_threshold = 0.05, .startup_steps = 4}},
  };
  for (const auto& [pruner, expected] : cases) {
    SCOPED_TRACE(pruner);
    const std::string yaml = absl::StrCat("name: x\nobjective: {metric: f1, direction: maximize}\n",
                                          "trainer: {task: own}\npruner: ", pruner, "\n",
                                          "parameters: {n: {int: [1, 5]}}\n");
    const auto spec = ParseStudyFile(yaml, "my.yaml", {});
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->pruner, expected);
  }
}

TEST(StudyFile, RefusesWhatIsNotOneMapping) {
  EXPECT_EQ(ParseStudyFile("", "my.yaml", {}).status().message(),
            "my.yaml:1:1: expected a YAML document, got none");
  EXPECT_EQ(ParseStudyFile("[]", "my.yaml", {}).status().message(),
            "my.yaml:1:1: expected a mapping, got a list");
  EXPECT_EQ(ParseStudyFile("a: b: c", "my.yaml", {}).status().message(),
            "my.yaml:1:5: expected YAML: illegal map value");
  EXPECT_THAT(
      std::string(ParseStudyFile(std::string(2 << 20, '#'), "my.yaml", {}).status().message()),
      HasSubstr("expected at most 1 MiB of YAML"));
  EXPECT_EQ(ParseStudyFile("name: x\nobjective: {metric: f1}\n", "my.yaml", {}).status().message(),
            "my.yaml:2:12: objective: expected a key 'direction', got none\n"
            "my.yaml:1:1: expected a key 'parameters', got none");
  EXPECT_EQ(ParseStudyFile("name: x\nobjective: {metric: f1, direction: up}\n", "my.yaml", {})
                .status()
                .message(),
            "my.yaml:2:36: objective.direction: expected minimize or maximize, got 'up'\n"
            "my.yaml:1:1: expected a key 'parameters', got none");
}

TEST(StudyFile, TellsAllThatIsWrongAtOnce) {
  const std::string head = "name: .x\nobjective: {metric: f1, direction: maximize}\n";
  EXPECT_EQ(ParseStudyFile(head + "budget: {trials: many}\nparameters:\n  a: {int: [5, 1]}\n"
                                  "  b: {float: [0, 1], when: {c: 1}}\n",
                           "my.yaml", {})
                .status()
                .message(),
            "my.yaml:3:18: budget.trials: expected an integer, got 'many'\n"
            "my.yaml:5:6: parameters.a: expected low <= high, got [5, 1]");
  const auto meant =
      ParseStudyFile(head +
                         "trainer: {task: custom, epochs: 0}\nbudget: {trials: -1}\nparameters:\n"
                         "  a: {int: [1, 5]}\n",
                     "my.yaml", {});
  const std::vector<std::string> lines = absl::StrSplit(meant.status().message(), '\n');
  EXPECT_THAT(lines, ::testing::ElementsAre(HasSubstr("my.yaml:1:7: name: expected"),
                                            HasSubstr("my.yaml:3:33: trainer.epochs: expected"),
                                            HasSubstr("my.yaml:4:18: budget.trials: expected")));
}

// Found by tests/fuzz: JSON, in which studies are stored, has no place for other bytes.
TEST(StudyFile, RefusesWhatIsNotUtf8) {
  EXPECT_EQ(ParseAfterHead("  labels: [\xC3\xA9t\xC3\xA9, \x87]\n").status().message(),
            "my.yaml:6:17: expected UTF-8, got the byte 0x87");
}

// Found by tests/fuzz: yaml-cpp reads endless empty documents from this.
TEST(StudyFile, ReadsAStrayCommaToAnEnd) {
  EXPECT_EQ(ParseStudyFile(",'3", "my.yaml", {}).status().message(),
            "my.yaml:1:1: expected the end of the one YAML document, got more");
}

// Thousands of nested lists must be an error, not an overflow of the stack.
TEST(StudyFile, RefusesDeepNesting) {
  const auto spec = ParseAfterHead("labels: " + std::string(100'000, '['));
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StudyOverrides, BeatTheFile) {
  StudyOverrides overrides;
  overrides.model_choices = {"roberta-large", "my-own"};
  overrides.epochs = 1;
  overrides.trials = 8;
  overrides.train = "/data/t.csv";
  overrides.validation = "/data/v.csv";
  overrides.seed = 7;
  const auto spec = LoadStudy("criteria", overrides);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->trainer.epochs, 1);
  EXPECT_EQ(spec->budget.trials, 8);
  EXPECT_EQ(spec->budget.wall_clock, absl::Hours(8));
  EXPECT_EQ(spec->trainer.train, "/data/t.csv");
  EXPECT_EQ(spec->trainer.validation, "/data/v.csv");
  EXPECT_EQ(spec->sampler.seed, 7u);
  const Parameter& models = *spec->space.Find("model.name");
  EXPECT_EQ(FormatDomain(models.domain), "{roberta-large, my-own}");
  // The file's default is no longer a choice.
  EXPECT_EQ(models.default_value, ParamValue(std::string("roberta-large")));
  EXPECT_EQ(spec->space.model_facts.count("roberta-large"), 1u);
  EXPECT_EQ(spec->space.model_facts.count("my-own"), 0u);
}

TEST(StudyOverrides, ATaskIsThatOfAFileThatNamesNone) {
  const std::string head = "name: s\nobjective: {metric: m, direction: minimize}\n";
  const std::string space = "parameters: {x: {int: [1, 2]}}\n";
  StudyOverrides overrides;
  overrides.task = "custom";
  for (const char* trainer : {"", "trainer: {epochs: 2}\n"}) {
    const auto spec = ParseStudyFile(absl::StrCat(head, trainer, space), "s.yaml", overrides);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->trainer.task, "custom");
  }
  const auto named =
      ParseStudyFile(absl::StrCat(head, "trainer: {task: mine}\n", space), "s.yaml", overrides);
  EXPECT_EQ(named->trainer.task, "mine");
}

TEST(StudyOverrides, ThatDoNotApplyAreErrors) {
  const std::string plain = absl::StrCat(kHead, "parameters: {n: {int: [1, 5]}}\n");
  StudyOverrides models;
  models.model_choices = {"a"};
  EXPECT_THAT(std::string(ParseStudyFile(plain, "my.yaml", models).status().message()),
              HasSubstr("my.yaml: override of model choices: expected a study that searches"));
  StudyOverrides twice;
  twice.model_choices = {"a", "a"};
  EXPECT_THAT(std::string(LoadStudy("criteria", twice).status().message()),
              HasSubstr("expected distinct choices, got a twice"));
  StudyOverrides epochs;
  epochs.epochs = 0;
  EXPECT_THAT(std::string(ParseStudyFile(plain, "my.yaml", epochs).status().message()),
              HasSubstr("override of epochs: expected >= 1, got 0"));
  StudyOverrides trials;
  trials.trials = -1;
  EXPECT_FALSE(ParseStudyFile(plain, "my.yaml", trials).ok());
}

TEST(StudyOverrides, ComeFromTheEnvironment) {
  ScopedEnvironment environment;
  environment.Set("HPO_MODEL_CHOICES", "bert-base-uncased, my-own");
  environment.Set("HPO_EPOCHS", "2");
  environment.Set("HPO_TRIALS", "8");
  environment.Set("HPO_SEED", "9");
  environment.Set("HPO_TRAIN", "t.jsonl");
  environment.Set("HPO_VALIDATION", "");
  const auto overrides = OverridesFromEnvironment();
  ASSERT_TRUE(overrides.ok()) << overrides.status();
  EXPECT_EQ(overrides->model_choices, (std::vector<std::string>{"bert-base-uncased", "my-own"}));
  EXPECT_EQ(overrides->epochs, 2);
  EXPECT_EQ(overrides->trials, 8);
  EXPECT_EQ(overrides->seed, 9u);
  EXPECT_EQ(overrides->train, "t.jsonl");
  EXPECT_EQ(overrides->validation, std::nullopt);  // empty is unset

  environment.Set("HPO_EPOCHS", "two");
  EXPECT_EQ(OverridesFromEnvironment().status().message(),
            "HPO_EPOCHS: expected an integer >= 1, got 'two'");
  environment.Set("HPO_EPOCHS", "2");
  environment.Set("HPO_MODEL_CHOICES", "a,,b");
  EXPECT_THAT(std::string(OverridesFromEnvironment().status().message()),
              HasSubstr("HPO_MODEL_CHOICES: expected model names with commas between"));
}

TEST(LoadStudy, LooksAtPathsThenTheUsersFolderThenThePresets) {
  const std::filesystem::path config = std::filesystem::path(testing::TempDir()) / "hpo_config";
  std::filesystem::create_directories(config / "hpo" / "studies");
  ScopedEnvironment environment;
  environment.Set("XDG_CONFIG_HOME", config.string());
  const std::string path = (config / "hpo" / "studies" / "mine.yaml").string();
  std::ofstream(path) << kHead << "parameters: {n: {int: [1, 5]}}\n";

  EXPECT_EQ(LoadStudy("mine", {})->name, "mine");
  EXPECT_EQ(LoadStudy(path, {})->name, "mine");
  EXPECT_EQ(LoadStudy("criteria", {})->name, "criteria");
  const absl::Status missing = LoadStudy("nothing", {}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("study 'nothing': expected one of criteria, fast-prototype, "
                        "maximum-quality, memory-safe, ultra-low-memory, mine, or a file"));
  EXPECT_EQ(LoadStudy("./absent.yaml", {}).status().code(), absl::StatusCode::kNotFound);

  const std::string bare = "hpo_bare_study";
  std::ofstream(bare) << kHead << "parameters: {n: {int: [1, 5]}}\n";
  EXPECT_EQ(FindStudySource(bare)->origin, bare);
  EXPECT_EQ(FindStudySource("mine")->origin, path);
  EXPECT_EQ(FindStudySource("criteria")->origin, "studies/criteria.yaml");
  std::filesystem::remove(bare);

  std::ofstream(path) << "name: broken\n";
  EXPECT_THAT(std::string(LoadStudy("mine", {}).status().message()),
              ::testing::StartsWith(absl::StrCat(path, ":1:1: expected a key 'objective'")));
  std::filesystem::remove_all(config);
}

int64_t CountCombinations(const SearchSpace& space, const char* model) {
  const ParamMap params = {{"model.name", std::string(model)}};
  int64_t count = 1;
  for (const char* name : {"train.batch_size", "train.grad_accum", "tok.max_length"}) {
    count *= *NumValues(*AllowedDomain(space, *space.Find(name), params));
  }
  return count;
}

// The sources count 546 combinations of batch, accumulation and length, and 108 for heavy models.
TEST(CriteriaPreset, HasTheGridsOfTheSources) {
  ASSERT_THAT(PresetNames(), ::testing::Contains("criteria"));
  const auto spec = LoadStudy("criteria", {});
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::pair<const char*, int64_t> cases[] = {
      {"all-minilm-l6-v2", 546},           {"bert-base-uncased", 546},  {"roberta-base", 546},
      {"microsoft/deberta-v3-base", 546},  {"bert-large-uncased", 108}, {"roberta-large", 108},
      {"microsoft/deberta-v3-large", 108}, {"xlm-roberta-base", 108},
  };
  const Parameter& models = *spec->space.Find("model.name");
  EXPECT_EQ(NumValues(models.domain), static_cast<int64_t>(std::size(cases)));
  for (const auto& [model, combinations] : cases) {
    SCOPED_TRACE(model);
    EXPECT_TRUE(Contains(models.domain, std::string(model)));
    EXPECT_EQ(CountCombinations(spec->space, model), combinations);
  }
}

TEST(CriteriaPreset, StartsWithAConfigurationOfItsSpace) {
  const auto spec = LoadStudy("criteria", {});
  ASSERT_TRUE(spec.ok()) << spec.status();
  ParamMap first = {{"seed", int64_t{1}}};
  for (const Parameter& parameter : spec->space.parameters) {
    if (parameter.default_value.has_value()) first[parameter.name] = *parameter.default_value;
  }
  EXPECT_TRUE(ValidateParams(spec->space, first).ok()) << ValidateParams(spec->space, first);
  EXPECT_EQ(FormatParams(first),
            "model.name=all-minilm-l6-v2 seed=1 tok.max_length=128 train.batch_size=16 "
            "train.grad_accum=1 train.lr=5e-05");
}

TEST(Presets, AreStudiesThatStartInTheirSpace) {
  EXPECT_THAT(PresetNames(), ::testing::ElementsAre("criteria", "fast-prototype", "maximum-quality",
                                                    "memory-safe", "ultra-low-memory"));
  for (const std::string& name : PresetNames()) {
    SCOPED_TRACE(name);
    const auto spec = LoadStudy(name, {});
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->name, name);
    ParamMap first;
    for (const Parameter& parameter : spec->space.parameters) {
      if (parameter.name == "seed") first["seed"] = int64_t{1};
      if (!parameter.when.empty()) continue;
      if (parameter.default_value.has_value()) first[parameter.name] = *parameter.default_value;
    }
    EXPECT_TRUE(ValidateParams(spec->space, first).ok()) << ValidateParams(spec->space, first);
  }
}

TEST(Presets, HaveTheirPublishedConfigurations) {
  const std::tuple<const char*, int64_t, const char*> cases[] = {
      {"ultra-low-memory", 5,
       "memory.checkpoint_every=1 tok.max_length=256 train.batch_size=4 train.grad_accum=4 "
       "train.lr=2e-05 train.optimizer=adamw_8bit train.precision=fp16"},
      {"fast-prototype", 2, "data.subset=0.1"},
      {"maximum-quality", 5,
       "tok.max_length=512 train.batch_size=16 train.grad_accum=1 train.lr=2e-05 "
       "train.precision=fp16"},
      {"memory-safe", 3, "head.layers=0 tok.max_length=256 train.batch_size=16 train.grad_accum=2"},
  };
  for (const auto& [name, epochs, expected] : cases) {
    SCOPED_TRACE(name);
    const auto spec = LoadStudy(name, {});
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->trainer.epochs, epochs);
    ParamMap first = spec->trainer.defaults;
    for (const Parameter& parameter : spec->space.parameters) {
      if (parameter.default_value.has_value()) first[parameter.name] = *parameter.default_value;
    }
    const std::vector<std::string> all = absl::StrSplit(FormatParams(first), ' ');
    const std::vector<std::string> values = absl::StrSplit(expected, ' ');
    EXPECT_THAT(all, ::testing::IsSupersetOf(values));
  }
}

TEST(Presets, MemorySafeIsNarrowerForDeberta) {
  const auto spec = LoadStudy("memory-safe", {});
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto allowed = [&spec](const char* model, const char* name) {
    return *AllowedDomain(spec->space, *spec->space.Find(name),
                          {{"model.name", std::string(model)}});
  };
  const char* const deberta = "microsoft/deberta-v3-base";
  EXPECT_TRUE(Contains(allowed("roberta-base", "train.batch_size"), int64_t{128}));
  EXPECT_FALSE(Contains(allowed(deberta, "train.batch_size"), int64_t{128}));
  EXPECT_EQ(NumValues(allowed("roberta-base", "tok.max_length")), 4);
  EXPECT_EQ(NumValues(allowed(deberta, "tok.max_length")), 3);
  EXPECT_EQ(NumValues(allowed("roberta-base", "head.layers")), 4);
  EXPECT_EQ(NumValues(allowed(deberta, "head.layers")), 3);
  EXPECT_EQ(NumValues(allowed(deberta, "memory.checkpoint_every")), 1);
}

}  // namespace
}  // namespace hpo
