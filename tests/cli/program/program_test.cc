#include "cli/program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "cli/client/client.h"
#include "nlohmann/json.hpp"
#include "tests/cli/run_program.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// `hpo` against a real server in this process.
class ProgramTest : public server::CoordinatorFixture {
 protected:
  ProgramResult Run(std::vector<std::string> words) const {
    if (coordinator_ != nullptr) {
      words.push_back("--server");
      words.push_back(coordinator_->address());
    }
    return RunProgram(std::move(words));
  }

  nlohmann::json RunJson(std::vector<std::string> words) const {
    words.push_back("--output");
    words.push_back("json");
    return ParsedOutput(Run(std::move(words)));
  }

  std::string WriteStudy(const std::string& yaml) const {
    const std::string path = folder_ / "study.yaml";
    std::ofstream(path) << yaml;
    return path;
  }

  void ExpectFails(const std::vector<std::string>& words, int status,
                   const std::string& message) const {
    const ProgramResult result = Run(words);
    EXPECT_EQ(result.status, status) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
};

TEST_F(ProgramTest, AnEmptyServerSaysWhatToDo) {
  const ProgramResult status = Run({"status"});
  EXPECT_EQ(status.status, 0);
  EXPECT_THAT(status.out, HasSubstr("no studies; add one with: hpo study create FILE"));
  EXPECT_EQ(RunJson({"study", "list"}), nlohmann::json::array());
  EXPECT_EQ(Run({"best"}).status, 3);
}

TEST_F(ProgramTest, AStudyFileIsValidatedThenCreated) {
  const std::string path = WriteStudy(server::kPlainStudy);
  const ProgramResult valid = Run({"study", "validate", path});
  EXPECT_EQ(valid.status, 0) << valid.err;
  EXPECT_THAT(valid.out, StartsWith(path + " is valid: study plain\n"));
  EXPECT_THAT(valid.out, HasSubstr("train.batch_size"));
  EXPECT_EQ(RunJson({"study", "list"}).size(), 0u);

  EXPECT_EQ(Run({"study", "create", path}).out, "study plain created\n");
  EXPECT_EQ(Run({"study", "create", path}).out, "study plain was there already\n");
  EXPECT_EQ(RunJson({"study", "show"})["name"], "plain");

  ASSERT_EQ(Run({"enqueue"}).status, 0);  // a study without trials may still change
  std::string changed = server::kPlainStudy;
  changed.replace(changed.find("maximize"), 8, "minimize");
  ExpectFails({"study", "create", WriteStudy(changed)}, 4, "direction");
  ExpectFails({"study", "validate", WriteStudy(std::string(server::kPlainStudy) + "bugdet: {}\n")},
              2, "did you mean 'budget'?");
  ExpectFails({"study", "validate", folder_ / "absent.yaml"}, 3, "absent.yaml");
}

TEST_F(ProgramTest, AStudyFileIsValidatedWithoutAServerWithAllItsErrors) {
  const std::string nobody = "127.0.0.1:1";
  const std::string path = WriteStudy(server::kPlainStudy);
  const ProgramResult valid = RunProgram({"study", "validate", path, "--server", nobody});
  EXPECT_EQ(valid.status, 0) << valid.err;
  EXPECT_THAT(valid.out, StartsWith(path + " is valid: study plain\nno server answers at"));
  EXPECT_EQ(ParsedOutput(RunProgram({"study", "validate", path, "--name", "second", "--output",
                                     "json", "--server", nobody}))["study"]["name"],
            "second");

  WriteStudy(
      "name: x\nbugdet: {}\nobjective: {metric: f1, direction: up}\n"
      "parameters:\n  a: {int: [5, 1]}\n  b: {flaot: [0, 1]}\n");
  const ProgramResult wrong = RunProgram({"study", "validate", path, "--server", nobody});
  EXPECT_EQ(wrong.status, 2);
  for (const char* part : {"yaml:3:", "expected minimize or maximize, got 'up'",
                           "yaml:2:", "did you mean 'budget'?", "yaml:5:", "yaml:6:", "'float'"}) {
    EXPECT_THAT(wrong.err, HasSubstr(part));
  }
}

TEST_F(ProgramTest, ASecondStudyOfOneFileHasANameOfItsOwn) {
  const std::string path = WriteStudy(server::kPlainStudy);
  EXPECT_EQ(Run({"study", "create", path}).out, "study plain created\n");
  EXPECT_EQ(Run({"study", "create", path, "--name", "second"}).out, "study second created\n");
  EXPECT_EQ(Run({"study", "create", "criteria", "--name", "third"}).out, "study third created\n");
  ExpectFails({"study", "create", path, "--name", "-no"}, 2, "study.yaml:2:");
  setenv("HPO_STUDY", "second", 1);
  EXPECT_EQ(RunJson({"study", "show"})["name"], "second");
  EXPECT_EQ(RunJson({"study", "show", "plain"})["name"], "plain") << "a word beats it";
  EXPECT_EQ(RunJson({"study", "show", "--study", "third"})["name"], "third");
  unsetenv("HPO_STUDY");
}

TEST_F(ProgramTest, TrialsAreSortedAndChosenByWhatTheyHave) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  const std::string session = Register();
  for (const double score : {0.5, 0.9, 0.7}) {
    Complete(Acquire(session, "a" + std::to_string(score)).assignment(), score);
  }
  const auto numbers = [this](std::vector<std::string> words) {
    words.insert(words.begin(), {"trial", "list"});
    std::vector<int> found;
    const nlohmann::json listed = RunJson(words);
    for (const auto& trial : listed["trials"]) found.push_back(trial["number"]);
    return found;
  };
  EXPECT_EQ(numbers({"--sort", "score", "--descending"}), (std::vector<int>{1, 2, 0}));
  EXPECT_EQ(numbers({"--sort", "score", "--descending", "--limit", "2", "--page", "2"}),
            (std::vector<int>{0}));
  EXPECT_EQ(numbers({"--where", "score>=0.7", "--where", "state=completed"}),
            (std::vector<int>{1, 2}));
  for (const std::string how : {"--sort=score", "--newest-first"}) {
    ExpectFails({"trial", "list", how, "--limit", "2", "--page", "3"}, 3,
                "--page: expected at most 2, got 3 (3 trials)");
  }
  ExpectFails({"trial", "list", "--sort", "scroe"}, 2, "did you mean 'score'?");

  const ProgramResult yaml = Run({"best", "-o", "yaml"});
  EXPECT_THAT(yaml.out, StartsWith("# trial #1 of plain, score 0.9\nhead: \""));
  ExpectFails({"trial", "list", "-o", "yaml"}, 2, "--output: expected table or json, got 'yaml'");
}

TEST_F(ProgramTest, AWrongNumberIsToldItsRange) {
  ExpectFails({"trial", "list", "--limit", "0"}, 2,
              "--limit: expected a number from 1 to 1000, got '0'");
  ExpectFails({"study", "extend", "--trials", "-1"}, 2,
              "--trials: expected a number of at least 0, got '-1'");
}

TEST_F(ProgramTest, HelpHasTheExamplesOfTheCommandAtHand) {
  const ProgramResult list = RunProgram({"trial", "list", "--help"});
  EXPECT_THAT(list.out, HasSubstr("Examples:\n  hpo trial list --state pruned"));
  EXPECT_THAT(list.out, testing::Not(HasSubstr("hpo best")));
  EXPECT_THAT(RunProgram({"trial", "--help"}).out, HasSubstr("hpo trial stop 12"));
  EXPECT_THAT(RunProgram({"--help"}).out, HasSubstr("hpo best --export"));
}

TEST_F(ProgramTest, TrialsAreListedShownAndFiltered) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  const std::string session = Register();
  Complete(Acquire(session, "a1").assignment(), 0.5);
  v1::Outcome oom;
  oom.mutable_out_of_memory()->set_kind(v1::OOM_KIND_CONFIGURATION);
  oom.mutable_out_of_memory()->set_phase("backward");
  oom.mutable_out_of_memory()->set_limit_bytes(int64_t{8} << 30);
  Finish(Acquire(session, "a2").assignment(), oom);

  const ProgramResult list = Run({"trial", "list"});
  EXPECT_THAT(list.out, HasSubstr("PRUNED (OUT_OF_MEMORY)"));
  EXPECT_THAT(list.out, HasSubstr("COMPLETED"));
  const nlohmann::json pruned = RunJson({"trial", "list", "--state", "Pruned"});
  ASSERT_EQ(pruned["trials"].size(), 1u);
  EXPECT_EQ(pruned["trials"][0]["prune_reason"], "OUT_OF_MEMORY");
  EXPECT_EQ(pruned["total"], 1);

  const nlohmann::json page = RunJson({"trial", "list", "--limit", "1", "--page", "2"});
  ASSERT_EQ(page["trials"].size(), 1u);
  EXPECT_EQ(page["trials"][0]["number"], 1);
  ExpectFails({"trial", "list", "--limit", "1", "--page", "3"}, 3, "--page: expected at most 2");
  ExpectFails({"trial", "list", "--state", "prund"}, 2, "did you mean 'pruned'?");

  EXPECT_THAT(Run({"trial", "show", "1"}).out, HasSubstr("Out of memory"));
  EXPECT_EQ(RunJson({"trial", "show", "0"})["attempts"].size(), 1u);
  ExpectFails({"trial", "show", "99"}, 3, "99");
}

TEST_F(ProgramTest, TheBestTrialIsShownAndExported) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  const std::filesystem::path model = folder_ / "best";
  std::filesystem::create_directory(model);
  std::ofstream(model / "config.json") << "{}";
  std::ofstream(model / "model.safetensors") << "x";
  const std::string session = Register();
  ExpectFails({"best"}, 3, "no trial of study plain has completed yet (0 of 4 finished)");
  Complete(Acquire(session, "a1").assignment(), 0.5, "/nowhere");
  Complete(Acquire(session, "a2").assignment(), 0.9, model);
  EXPECT_THAT(Run({"best"}).out, StartsWith("best trial of plain: #1, score 0.9\n"));
  EXPECT_EQ(RunJson({"best", "--n", "5"})["trials"].size(), 2u);
  const std::string out = folder_ / "exported";
  EXPECT_THAT(Run({"best", "--export", out}).out, HasSubstr("exported to " + out));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "exported" / "model.safetensors"));
  ExpectFails({"best", "--export", out}, 4, "something is there");
}

TEST_F(ProgramTest, TwoObjectivesAreShownAsTwoWithTheirFront) {
  std::string yaml = server::kPlainStudy;
  const std::string one = "objective: {metric: score, direction: maximize}";
  yaml.replace(yaml.find(one), one.size(),
               "objective:\n  - {metric: score, direction: maximize}\n"
               "  - {metric: cost, direction: minimize}");
  ASSERT_TRUE(Create(yaml).ok());
  const std::string session = Register();
  const std::pair<double, double> values[] = {{0.5, 3.0}, {0.9, 9.0}, {0.4, 4.0}};
  for (size_t i = 0; i < std::size(values); ++i) {
    v1::Outcome outcome;
    auto& metrics = *outcome.mutable_completed()->mutable_metrics();
    metrics["score"] = values[i].first;
    metrics["cost"] = values[i].second;
    Finish(Acquire(session, "a" + std::to_string(i)).assignment(), outcome);
  }
  EXPECT_EQ(RunJson({"best"})["trials"].size(), 2u) << "the front, without --n";
  EXPECT_EQ(RunJson({"best", "--n", "1"})["trials"].size(), 1u);
  EXPECT_THAT(Run({"best"}).out, StartsWith("TRIAL  STATE      score  cost  TIME"));
  EXPECT_THAT(Run({"trial", "list"}).out, StartsWith("TRIAL  STATE      FRONT  score  cost  TIME"));
  for (const std::string& out : {Run({"status"}).out, Run({"study", "show"}).out}) {
    EXPECT_THAT(out, HasSubstr("front       #1 score 0.9, cost 9\n"
                               "            #0 score 0.5, cost 3\n"));
  }
  EXPECT_THAT(Run({"study", "list"}).out, HasSubstr("front #1 #0\n"));
  ASSERT_EQ(Run({"study", "extend", "--trials", "3"}).status, 0);
  EXPECT_THAT(Run({"watch", "--until-finished"}).out, HasSubstr("front       #1 score 0.9"));
}

TEST_F(ProgramTest, ATrialIsEnqueuedWithTypedValues) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  const nlohmann::json trial = RunJson({"enqueue", "train.batch_size=8", "head=deep",
                                        "--demonstration", "--no-admission", "--micro-batch", "4"});
  EXPECT_EQ(trial["params"]["train.batch_size"], 8);
  EXPECT_EQ(trial["params"]["head"], "deep");
  EXPECT_TRUE(trial["params"]["train.lr"].is_number_float());
  EXPECT_EQ(trial["demonstration"], true);
  EXPECT_EQ(trial["admission"], false);
  EXPECT_EQ(trial["forced_micro_batch"], 4);
  ExpectFails({"enqueue", "train.batch_sise=8"}, 2, "did you mean 'train.batch_size'?");
  ExpectFails({"enqueue", "train.batch_size=9999"}, 2, "train.batch_size");
}

TEST_F(ProgramTest, ABudgetIsExtended) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  EXPECT_EQ(Run({"study", "extend", "plain", "--trials", "9"}).out,
            "plain: budget of 9 trials, 0 done\n");
  EXPECT_EQ(
      RunJson({"study", "extend", "plain", "--wall-clock", "2h"})["budget"]["wall_clock_seconds"],
      7200.0);
  const nlohmann::json limits = RunJson(
      {"study", "extend", "plain", "--failures-in-a-row", "7", "--failed-share", "0.5"})["budget"];
  EXPECT_EQ(limits["failures_in_a_row"], 7);
  EXPECT_EQ(limits["failed_share"], 0.5);
  EXPECT_EQ(Run({"study", "extend", "plain", "--add", "5"}).out,
            "plain: budget of 14 trials and 2h, 0 done\n");
  ExpectFails({"study", "extend"}, 2, "expected --trials, --add, --wall-clock");
  ExpectFails({"study", "extend", "--wall-clock", "soon"}, 2, "expected a duration such as 2h");
  ExpectFails({"study", "extend", "--trials", "1", "--add", "1"}, 2, "--add");
  ExpectFails({"study", "extend", "absent", "--add", "1"}, 3, "absent");
}

// Tells when its first line is there.
class FollowedOutput : public std::stringbuf {
 public:
  void AwaitLine() { line_.get_future().wait(); }

 private:
  int sync() override {
    if (!std::exchange(told_, true)) line_.set_value();
    return std::stringbuf::sync();
  }

  std::promise<void> line_;
  bool told_ = false;
};

TEST_F(ProgramTest, AWatchEndsWithTheStudy) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  FollowedOutput output;
  std::future<ProgramResult> watch = std::async(std::launch::async, [&] {
    const std::string address = coordinator_->address();
    return RunProgram({"watch", "--until-finished", "--server", address}, output);
  });
  output.AwaitLine();  // that no worker is connected
  const std::string session = Register();
  for (int i = 0; i < 4; ++i) {
    Complete(Acquire(session, "a" + std::to_string(i)).assignment(), 0.1 * i);
  }
  const ProgramResult result = watch.get();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("waits: no worker is connected"));
  EXPECT_THAT(result.out, HasSubstr("trial 3 COMPLETED: score 0.3"));
  EXPECT_THAT(result.out, HasSubstr("4 of 4 trials, OOM 0 met, 0 predicted\n"));
}

TEST_F(ProgramTest, AWatchOutlivesTheServerAndShowsWhatItMissed) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  const std::string address = coordinator_->address();
  Client client(address);
  // The first event says that the watch is connected.
  std::promise<void> connected;
  std::future<absl::Status> first = std::async(std::launch::async, [&] {
    bool told = false;
    return client.studies().Watch("plain", 0, [&](const WatchEvent&) {
      if (!told) connected.set_value();
      told = true;
      return true;
    });
  });
  connected.get_future().wait();
  coordinator_->Drain(absl::Seconds(20));  // ends the watch
  EXPECT_TRUE(first.get().ok());
  coordinator_.reset();

  server::CoordinatorOptions options = Options();
  options.listen = ParseListenAddress(address).value();
  auto again = server::Coordinator::Start(options, clock_);
  ASSERT_TRUE(again.ok()) << again.status();
  coordinator_ = *std::move(again);
  ASSERT_TRUE(client.WaitUntilReachable(absl::Seconds(30)));
  const std::string session = Register();
  for (int i = 0; i < 4; ++i) {
    Complete(Acquire(session, "a" + std::to_string(i)).assignment(), 0.1 * i);
  }
  int finished = 0;
  const absl::Status replayed = client.studies().Watch("plain", 0, [&](const WatchEvent& event) {
    const TrialEvent* change = std::get_if<TrialEvent>(&event);
    if (change != nullptr && change->kind == "finished") ++finished;
    return finished < 4;
  });
  EXPECT_TRUE(replayed.ok()) << replayed;
  EXPECT_EQ(finished, 4);
}

TEST_F(ProgramTest, AStudyPausesResumesAndStopsAndAWatchSeesIt) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  const std::string session = Register();
  const v1::Assignment running = Acquire(session, "a1").assignment();
  FollowedOutput output;
  std::future<ProgramResult> watch = std::async(std::launch::async, [&] {
    const std::string address = coordinator_->address();
    return RunProgram({"watch", "--until-finished", "--server", address}, output);
  });
  EXPECT_EQ(Run({"study", "pause"}).out, "plain: paused, 1 running\n");
  output.AwaitLine();
  EXPECT_FALSE(Acquire(session, "a2").has_assignment());
  EXPECT_THAT(Run({"status"}).out, HasSubstr("plain (paused)"));
  EXPECT_EQ(RunJson({"study", "show"})["order"], "PAUSE");
  EXPECT_EQ(Run({"study", "resume", "plain"}).out, "plain: goes on\n");
  Complete(running, 0.5);
  ASSERT_TRUE(Acquire(session, "a3").has_assignment());
  EXPECT_EQ(Run({"study", "stop", "--now"}).out, "plain: stopped, 1 running to be stopped\n");
  EXPECT_THAT(Run({"status"}).out, HasSubstr("plain (stopping)"));
  EXPECT_EQ(Run({"trial", "stop", "1"}).status, 0) << "again is once";
  v1::Outcome cancelled;
  cancelled.mutable_cancelled();
  Finish(Acquire(session, "a3").assignment(), cancelled);
  const ProgramResult result = watch.get();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("waits: paused; to go on: hpo study resume plain"));
  EXPECT_THAT(result.out, HasSubstr("trial 1 will be ended by its worker"));
  EXPECT_THAT(result.out, HasSubstr("trial 1 CANCELLED"));
  EXPECT_THAT(Run({"status"}).out, HasSubstr("plain (stopped)"));
  ExpectFails({"enqueue"}, 4, "run: hpo study resume plain");
}

TEST_F(ProgramTest, TrialsAreStoppedAndCancelled) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  ASSERT_EQ(Run({"enqueue"}).status, 0);
  ExpectFails({"trial", "stop", "0"}, 4, "expected a running one, got QUEUED");
  EXPECT_EQ(Run({"trial", "cancel", "0"}).out, "trial #0 of plain cancelled\n");
  EXPECT_THAT(Run({"trial", "show", "0"}).out, HasSubstr("cancelled by hand"));
  ExpectFails({"trial", "cancel", "0"}, 4, "expected a queued one, got CANCELLED");
  ExpectFails({"trial", "cancel", "9"}, 3, "9");
  Acquire(Register(), "a1");
  EXPECT_EQ(Run({"trial", "stop", "1"}).out,
            "trial #1 of plain: its worker ends it at its next heartbeat\n");
}

TEST_F(ProgramTest, AStudyThatFailuresEndedIsStatusSevenAndShowsTheLast) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  ASSERT_EQ(Run({"study", "extend", "--trials", "100"}).status, 0);
  const std::string session = Register();
  v1::Outcome failed;
  failed.mutable_failed()->set_failure_class(v1::FAILURE_CLASS_BAD_DATA);
  failed.mutable_failed()->set_message("Traceback:\n  line 3\nValueError: bad");
  for (int i = 0; i < 5; ++i) {
    Finish(Acquire(session, "a" + std::to_string(i)).assignment(), failed);
  }
  EXPECT_TRUE(Acquire(session, "a9").all_studies_finished());
  const ProgramResult watch = Run({"watch", "--until-finished"});
  EXPECT_EQ(watch.status, 7);
  for (const std::string& out : {watch.out, Run({"status"}).out, Run({"study", "show"}).out}) {
    EXPECT_THAT(out, HasSubstr("failed      5 trials failed before one completed"));
    EXPECT_THAT(out, HasSubstr("\n            ValueError: bad\n"));
  }
  EXPECT_EQ(Run({"study", "resume"}).out, "plain: goes on\n");
  EXPECT_TRUE(Acquire(session, "b1").has_assignment());
}

TEST_F(ProgramTest, WorkersAreListedDrainedAndResumed) {
  EXPECT_EQ(Run({"worker", "list"}).out, "no worker has registered since the server started\n");
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  const std::string session = Register();
  const std::string name = RunJson({"worker", "list"})["workers"][0]["name"];
  ASSERT_TRUE(Acquire(session, "a0").has_assignment());
  EXPECT_THAT(Run({"worker", "list"}).out, HasSubstr("trial #0 of plain\n"));
  EXPECT_EQ(Run({"worker", "drain", name}).out, name + ": gets no more trials, and ends\n");
  EXPECT_THAT(Run({"worker", "list"}).out, HasSubstr("trial #0 of plain, drained\n"));
  EXPECT_THAT(Run({"status"}).out, HasSubstr("trial #0 of plain, drained\n"));
  EXPECT_TRUE(Acquire(session, "a1").drained());
  EXPECT_EQ(RunJson({"worker", "resume", "--all"})["workers"], nlohmann::json::array({name}));
  EXPECT_FALSE(Acquire(session, "a2").drained());
  EXPECT_EQ(Run({"worker", "resume", "--all"}).out, "no worker is drained\n");
  EXPECT_EQ(RunJson({"worker", "drain", "--all", "--now"})["workers"].size(), 1u);
  EXPECT_EQ(RunJson({"worker", "list"})["workers"][0]["drained"], true);
  ExpectFails({"worker", "drain", "nobody"}, 3,
              "worker 'nobody': expected one that has registered");
  ExpectFails({"worker", "drain"}, 2, "expected the workers' names or --all, got neither");
  ExpectFails({"worker", "resume", name, "--all"}, 2, "got both");
}

TEST_F(ProgramTest, AFleetThatMayNotRunTheStudysProgramIsToldSo) {
  const std::string yaml = absl::StrReplaceAll(
      server::kPlainStudy, {{"trainer: {train: train.jsonl, validation: valid.jsonl, epochs: 1}",
                             "trainer: {command: [run, \"{train.lr}\"]}"}});
  ASSERT_TRUE(Create(yaml).ok());
  const auto told = [this](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"fleet", "slurm",    "--workers",
                                      "2",     "--server", coordinator_->address()};
    words.insert(words.end(), more.begin(), more.end());
    testing::internal::CaptureStderr();
    const ProgramResult result = RunProgram(words);
    EXPECT_THAT(result.out, testing::StartsWith("#!/bin/bash\n")) << result.err;
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(told({"--study", "plain"}), HasSubstr("study plain names a program"));
  EXPECT_THAT(told({}), HasSubstr("-- --allow-commands"));
  EXPECT_EQ(told({"--study", "other"}), "");
  EXPECT_EQ(told({"--", "--allow-commands"}), "");
  EXPECT_EQ(told({"--", "--trainer", "a.sh"}), "");
}

TEST_F(ProgramTest, AFinishedStudyWithoutACompletedTrialIsStatusSix) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  const std::string session = Register();
  v1::Outcome failed;
  failed.mutable_failed()->set_failure_class(v1::FAILURE_CLASS_BAD_DATA);
  for (int i = 0; i < 4; ++i) {
    Finish(Acquire(session, "a" + std::to_string(i)).assignment(), failed);
  }
  EXPECT_EQ(Run({"watch", "--until-finished"}).status, 6);
}

TEST_F(ProgramTest, MemoryIsUnknownWithoutAWorkerThatTells) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  ExpectFails({"memory", "estimate", "train.batch_size=8"}, 4, "memory");
  ExpectFails({"memory", "estimate", "--limit", "much"}, 2, "expected a size such as 2GiB");
}

TEST_F(ProgramTest, AServerThatIsAwayIsOneLineAndStatusFive) {
  const std::string address = coordinator_->address();
  coordinator_.reset();
  for (const char* command : {"status", "best", "watch"}) {
    ExpectFails({command, "--server", address}, 5,
                "cannot reach hpo-server at " + address +
                    ": is it running? to start one: hpo-server --study criteria --listen " +
                    address);
  }
}

TEST_F(ProgramTest, TheEnvironmentNamesTheServer) {
  setenv("HPO_SERVER", "127.0.0.1:1", 1);
  coordinator_.reset();
  ExpectFails({"status"}, 5, "cannot reach hpo-server at 127.0.0.1:1");
  unsetenv("HPO_SERVER");
}

TEST_F(ProgramTest, WrongUseIsStatusTwo) {
  ExpectFails({"trail"}, 2, "no command 'trail'; did you mean 'trial'?");
  ExpectFails({"trial", "list", "--limt", "4"}, 2, "no option --limt; did you mean '--limit'?");
  ExpectFails({"status", "--output", "yaml"}, 2, "--output");
}

}  // namespace
}  // namespace hpo::cli
