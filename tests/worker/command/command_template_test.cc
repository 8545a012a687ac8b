#include "worker/command/command_template.h"

#include "absl/strings/str_cat.h"
#include "common/space/placeholders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::command {
namespace {

// What /bin/sh prints for a command.
std::string PrintedBy(const std::string& command) {
  FILE* const shell = popen(command.c_str(), "r");
  std::string printed;
  for (int c = fgetc(shell); c != EOF; c = fgetc(shell)) printed += static_cast<char>(c);
  pclose(shell);
  return printed;
}

using testing::HasSubstr;

const ParamMap kParams = {
    {"train.lr", 3e-5}, {"train.batch_size", int64_t{16}}, {"kind", std::string("it's a $HOME")}};

std::string Filled(const std::string& text, const ParamMap& params = kParams) {
  absl::StatusOr<std::string> filled =
      CommandTemplate(text).Fill(params, {{"trial", "12"}}, /*for_shell=*/true);
  return filled.ok() ? *filled : std::string(filled.status().message());
}

TEST(CommandTemplate, PutsValuesIntoTheirPlaces) {
  EXPECT_EQ(Filled("python train.py --lr {train.lr} --bs={train.batch_size} -n {trial}"),
            "python train.py --lr 3e-05 --bs=16 -n 12");
}

TEST(CommandTemplate, WritesRealNumbersWithAllTheirDigits) {
  EXPECT_EQ(Filled("{x} {args}", {{"x", 0.46469479835439886}}),
            "0.46469479835439886 --x=0.46469479835439886");
}

TEST(CommandTemplate, QuotesForTheShell) {
  EXPECT_EQ(Filled("run {kind}"), "run 'it'\\''s a $HOME'");
  EXPECT_EQ(Filled("run {kind}", {{"kind", std::string()}}), "run ''");
  EXPECT_EQ(*CommandTemplate("{kind}/a").Fill(kParams, {}, /*for_shell=*/false), "it's a $HOME/a");
}

TEST(CommandTemplate, GivesEveryParameterAsAnArgument) {
  EXPECT_EQ(Filled("run {args}", {{"a", int64_t{1}}, {"b", std::string("x y")}}),
            "run --a=1 '--b=x y'");
}

TEST(CommandTemplate, NullLeavesItsArgumentOutAndIsAWordInItsOwnPlace) {
  const ParamMap params = {{"depth", Null()}, {"n", int64_t{1}}};
  EXPECT_EQ(Filled("run {args}", params), "run --n=1");
  EXPECT_EQ(Filled("run --depth {depth}", params), "run --depth null");
  EXPECT_EQ(Filled("run {args}", {{"depth", Null()}}), "run ");
}

TEST(CommandTemplate, AFlagIsPresentOrAbsent) {
  const ParamMap params = {{"amp", true},
                           {"depth", Null()},
                           {"fast", false},
                           {"n", int64_t{1}},
                           {"sched", std::string("a b")}};
  EXPECT_EQ(Filled("run {args}", params), "run --amp --n=1 '--sched=a b'");
  EXPECT_EQ(Filled("run {flag:amp} {flag:fast} {flag:depth} {flag:n}", params),
            "run --amp   --n=1");
  EXPECT_EQ(Filled(ShellCommand({"run", "{flag:fast}", "{flag:sched}"}), params),
            "run  '--sched=a b'");
  EXPECT_THAT(Filled("run {flag:ampp}", params), HasSubstr("{flag:ampp}: this trial has no such"));
}

TEST(CommandTemplate, WhatHasAnOptionOfItsOwnIsNotGivenTwice) {
  const ParamMap params = {{"amp", true}, {"n", int64_t{1}}, {"x", 0.5}};
  EXPECT_EQ(Filled("run {args} --amp={amp}", params), "run --n=1 --x=0.5 --amp=true");
  EXPECT_EQ(Filled("run --amp \"{amp}\" {args}", params), "run --amp \"true\" --n=1 --x=0.5");
  EXPECT_EQ(Filled("run {args} {flag:amp}", params), "run --n=1 --x=0.5 --amp");
  // Not its own option.
  EXPECT_EQ(Filled("run {args} --out runs/{x} --said {n}", params),
            "run --amp --n=1 --x=0.5 --out runs/0.5 --said 1");
}

TEST(CommandTemplate, GivesHydrasOverrides) {
  EXPECT_EQ(Filled("run {overrides}", {{"amp", true}, {"n", Null()}, {"x", std::string("a b")}}),
            "run amp=true n=null 'x='\\''a b'\\'''");
}

TEST(CommandTemplate, QuotesWithinTheQuotesOfTheText) {
  EXPECT_EQ(Filled("run '{kind}' # it's"), "run 'it'\\''s a $HOME' # it's");
  EXPECT_EQ(Filled("run \"{kind}\""), "run \"it's a \\$HOME\"");
  EXPECT_EQ(Filled("run \\'{kind}"), "run \\''it'\\''s a $HOME'");
  EXPECT_EQ(Filled("# it's\nrun {kind}"), "# it's\nrun 'it'\\''s a $HOME'");
  EXPECT_EQ(Filled("bash -c 'run {args}'", {{"a", std::string("x y")}}),
            "bash -c 'run '\\''--a=x y'\\'''");
}

// What the shell makes of a value in these texts is the value, whatever it is; else they are
// refused.
TEST(CommandTemplate, NoValueIsRunAsACommand) {
  const std::string values[] = {
      "$(echo run)",    "`echo run`", "a b",     "it's", "\"; echo run; \"",
      "'; echo run; '", "\\",         "* $HOME", "a)b",  "a\nb"};
  const char* const taken[] = {"printf %s {v}",
                               "printf %s \"{v}\"",
                               "printf %s '{v}'",
                               "printf %s \"$(printf %s {v})\"",
                               "printf %s \"$(printf %s \"{v}\")\"",
                               "printf %s \"$(printf %s '{v}')\"",
                               "printf %s \"$(printf %s \"$(printf %s \"{v}\")\")\"",
                               "printf %s \"$(true $((1 + (2))); (printf %s {v}))\"",
                               ": \"$(echo a)\" # it's a comment\nprintf %s \"{v}\""};
  for (const char* const text : taken) {
    for (const std::string& value : values) {
      SCOPED_TRACE(absl::StrCat(text, " with ", value));
      const auto filled = CommandTemplate(text).Fill({{"v", value}}, {}, /*for_shell=*/true);
      ASSERT_TRUE(filled.ok()) << filled.status();
      EXPECT_EQ(PrintedBy(*filled), value);
    }
  }
  for (const char* const text :
       {"printf %s `printf %s {v}`", "printf %s \"`printf %s {v}`\"", "cat <<END\n{v}\nEND\n",
        "cat <<'END'\n{v}\nEND\n", "printf %s \"$(case a in a) printf %s {v};; esac)\""}) {
    EXPECT_EQ(CommandTemplate(text).CheckForShell().code(), absl::StatusCode::kInvalidArgument)
        << text;
    EXPECT_FALSE(CommandTemplate(text).Fill({{"v", "x"}}, {}, /*for_shell=*/true).ok()) << text;
  }
}

TEST(CommandTemplate, ATextIsACommandOfItsOwn) {
  EXPECT_EQ(ShellCommand({"/bin/sh", "-c", "a {x} |\n  b"}), "a {x} |\n  b");
}

TEST(CommandTemplate, NamesConfigurationFiles) {
  TrainerJob job;
  job.output_dir = "/out";
  const CommandTemplate command("run {config} {config:json} {config:toml} {a:b}");
  EXPECT_TRUE(command.Has("config:json"));
  EXPECT_EQ(*command.Fill({}, JobValues(job, {}), /*for_shell=*/true),
            "run /out/hpo_params.yaml /out/hpo_params.json {config:toml} {a:b}");
}

TEST(CommandTemplate, LeavesTheShellsBracesAndThoseThatAreDoubled) {
  EXPECT_EQ(Filled("f() { echo ${trial} {{trial}} {1..3} {a,b}; }; f {trial}"),
            "f() { echo ${trial} {trial} {1..3} {a,b}; }; f 12");
  EXPECT_FALSE(CommandTemplate("f() { echo ${trial} {{trial}}; }").HasPlaces());
  EXPECT_TRUE(CommandTemplate("run {trial}").HasPlaces());
}

TEST(CommandTemplate, QuotesWordsAroundTheirPlaces) {
  const std::string command =
      ShellCommand({"my program", "--lr={train.lr}", "it's", "", "a {kind}"});
  EXPECT_EQ(command, "'my program' --lr={train.lr} 'it'\\''s' '' 'a '{kind}");
  EXPECT_EQ(Filled(command), "'my program' --lr=3e-05 'it'\\''s' '' 'a ''it'\\''s a $HOME'");
}

TEST(CommandTemplate, LeavesTheShellsBracesOfWords) {
  EXPECT_EQ(Filled(ShellCommand({"bash", "-c", "echo ${HOME} {{trial}} {trial}"})),
            "bash -c 'echo ${HOME} {trial} '12");
}

TEST(CommandTemplate, NamesTheValueThatATrialHasNot) {
  const std::string error = Filled("run {train.lrr}");
  EXPECT_THAT(error, HasSubstr("{train.lrr}: this trial has no such value; it has args, kind, "
                               "overrides, train.batch_size, train.lr, trial"));
}

TEST(CommandTemplate, AJobHasTheValuesThatPlaceholdersName) {
  std::vector<std::string> names;
  for (const auto& [name, value] : JobValues({}, {})) names.push_back(name);
  EXPECT_EQ(names, TrialValueNames());
}

TEST(CommandTemplate, AJobHasItsPlanAndItsPaths) {
  TrainerJob job;
  job.output_dir = "/out";
  const auto values = JobValues(job, {.effective_batch = 32, .micro_batch = 12});
  EXPECT_EQ(values.at("micro_batch"), "12");
  EXPECT_EQ(values.at("accumulation"), "3");
  EXPECT_EQ(values.at("output_dir"), "/out");
}

TEST(CommandTemplate, RanksShareTheEffectiveBatch) {
  TrainerJob job;
  job.task.trainer.gpus = 4;
  const auto values = JobValues(job, {.effective_batch = 64, .micro_batch = 8});
  EXPECT_EQ(values.at("gpus"), "4");
  EXPECT_EQ(values.at("micro_batch"), "8");
  EXPECT_EQ(values.at("accumulation"), "2");
  const std::pair<MemoryPlan, int64_t> cases[] = {
      {{.effective_batch = 64, .micro_batch = 64}, 16},
      {{.effective_batch = 64, .micro_batch = 4}, 4},
      {{.effective_batch = 6, .micro_batch = 6}, 2},
      {{.effective_batch = 1, .micro_batch = 1}, 1},
  };
  for (const auto& [plan, expected] : cases) {
    EXPECT_EQ(PlanOfRank(plan, 4).micro_batch, expected);
    EXPECT_EQ(PlanOfRank(plan, 1), plan);
  }
}

}  // namespace
}  // namespace hpo::command
