// Trials that are stopped and taken up again by another attempt.
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/small_disk.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/models/files/safetensors.h"
#include "worker/trainer/program/run_trial.h"

namespace hpo::trainer {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Asks to stop, with a checkpoint or without, once an attempt has done `steps` optimizer steps:
// it is asked before each.
class StopAfter final : public StopSource {
 public:
  explicit StopAfter(std::optional<int64_t> steps, bool checkpoint = true)
      : steps_(steps), checkpoint_(checkpoint) {}
  std::optional<StopRequest> Poll() override {
    if (!steps_.has_value() || asked_++ < *steps_) return std::nullopt;
    return StopRequest{.reason = "drain", .checkpoint = checkpoint_};
  }

 private:
  std::optional<int64_t> steps_;
  bool checkpoint_;
  int64_t asked_ = 0;
};

// What there is of a completed trial.
struct TrialResult {
  OutcomeMessage outcome;
  std::vector<Measurement> measurements;  // of the last attempt
  std::string weights;                    // the best ones, as bytes
};

class ResumeTest : public testing::Test {
 protected:
  // Three epochs of six steps, measured every four steps and at each end.
  TrainerJob Job(int64_t attempt = 1) const {
    TrainerJob job = trial_.Job();
    job.attempt = AttemptNumber{attempt};
    job.task.trainer.epochs = 3;
    job.task.trainer.measure_every_steps = 4;
    job.output_dir = trial_.Path(absl::StrCat("out-", attempt));
    fs::create_directories(job.output_dir);
    job.checkpoints.folder = trial_.Path("checkpoints/tiny/000042");
    return job;
  }

  // Runs until the end, or until a stop after `steps` steps.
  OutcomeMessage Run(const TrainerJob& job, std::optional<int64_t> steps = std::nullopt) {
    StopAfter stop(steps);
    return Run(job, stop);
  }
  OutcomeMessage Run(const TrainerJob& job, StopSource& stop) {
    events_ = RecordingEvents();
    OutcomeMessage message = RunTrial(job, device_, events_, stop);
    EXPECT_TRUE(message.clean);
    EXPECT_EQ(device_.memory->Read().live, device_.baseline);
    return message;
  }

  TrialResult Complete(const TrainerJob& job) {
    TrialResult result{.outcome = Run(job)};
    for (const auto& message : events_.All<MeasurementMessage>()) {
      result.measurements.push_back(message.measurement);
    }
    result.weights = TensorBytes(job.output_dir + "/best/model.safetensors");
    return result;
  }

  // All that differs between the attempts is where the weights are.
  static void ExpectEqual(const TrialResult& a, const TrialResult& b) {
    EXPECT_EQ(std::get<Completed>(a.outcome.outcome.value()).metrics,
              std::get<Completed>(b.outcome.outcome.value()).metrics);
    EXPECT_EQ(a.measurements, b.measurements);
    EXPECT_EQ(a.weights, b.weights);
  }

  std::vector<std::string> Logs() const {
    std::vector<std::string> lines;
    for (const LogMessage& message : events_.All<LogMessage>()) lines.push_back(message.text);
    return lines;
  }

  // The only checkpoint.
  std::string CheckpointFolder() const {
    for (const auto& entry : fs::directory_iterator(trial_.Path("checkpoints/tiny/000042"))) {
      return entry.path().string();
    }
    return "";
  }

  TinyTrial trial_;
  RecordingEvents events_;
  TrialDevice& device_ = TestDevice();
};

TEST_F(ResumeTest, AStoppedTrialGoesOnAsIfNothingHadHappened) {
  const TrialResult undisturbed = Complete(Job());
  ASSERT_EQ(undisturbed.measurements.size(), 6u);  // after 4, 6, 8, 12, 16 and 18 steps
  for (int64_t step = 1; step < 18; ++step) {
    SCOPED_TRACE(step);
    fs::remove_all(trial_.Path("checkpoints"));
    EXPECT_FALSE(Run(Job(), step).outcome.has_value());
    const auto saved = events_.All<CheckpointMessage>();
    ASSERT_THAT(saved, Not(IsEmpty()));
    EXPECT_EQ(saved.back().kind, "resume");
    EXPECT_EQ(saved.back().step, step);
    fs::remove_all(Job().output_dir);  // only the checkpoint is left
    ExpectEqual(Complete(Job(2)), undisturbed);
    EXPECT_THAT(Logs(), Contains(HasSubstr(absl::StrCat("goes on after step ", step))));
  }
}

TEST_F(ResumeTest, EveryOptimizerAndPrecisionGoesOnAsIfNothingHadHappened) {
  const auto text = [](const char* name, const char* value) {
    return ParamMap{{name, std::string(value)}};
  };
  const ParamMap choices[] = {text("train.optimizer", "adamw_8bit"),
                              text("train.optimizer", "adafactor"),
                              text("train.optimizer", "sgd"),
                              {{"train.optimizer", std::string("sgd")}, {"train.momentum", 0.0}},
                              text("train.precision", "fp16"),
                              text("train.precision", "bf16"),
                              {{"memory.checkpoint_every", int64_t{1}}}};
  for (const ParamMap& params : choices) {
    SCOPED_TRACE(FormatParams(params));
    const auto with = [&](TrainerJob job) {
      for (const auto& [name, value] : params) job.task.params[name] = value;
      return job;
    };
    fs::remove_all(trial_.Path("checkpoints"));
    const TrialResult undisturbed = Complete(with(Job()));
    for (const int64_t step : {3, 11}) {
      fs::remove_all(trial_.Path("checkpoints"));
      EXPECT_FALSE(Run(with(Job()), step).outcome.has_value());
      fs::remove_all(Job().output_dir);
      ExpectEqual(Complete(with(Job(2))), undisturbed);
      EXPECT_THAT(Logs(), Contains(HasSubstr(absl::StrCat("goes on after step ", step))));
    }
  }
}

TEST_F(ResumeTest, LossesReadLateAreInTheCheckpoint) {
  const TrialResult undisturbed = Complete(Job());
  for (const int64_t step : {3, 7, 13}) {
    SCOPED_TRACE(step);
    fs::remove_all(trial_.Path("checkpoints"));
    const LateReading late(device_);
    EXPECT_FALSE(Run(Job(), step).outcome.has_value());
    ExpectEqual(Complete(Job(2)), undisturbed);
  }
}

// What is frozen is not saved: it is made again, from the model's files or the seed.
TEST_F(ResumeTest, OnlyWhatIsTrainedIsSaved) {
  const ParamMap techniques[] = {
      {{"model.freeze_embeddings", true}, {"model.freeze_layers", int64_t{1}}},
      {{"lora.rank", int64_t{4}}, {"lora.dropout", 0.1}},
      {{"lora.rank", int64_t{4}}, {"lora.base", std::string("nf4")}}};
  for (const ParamMap& params : techniques) {
    for (const char* init : {"pretrained", "random"}) {
      SCOPED_TRACE(absl::StrCat(FormatParams(params), ", ", init));
      const auto with = [&](TrainerJob job) {
        for (const auto& [name, value] : params) job.task.params[name] = value;
        job.task.trainer.model_init = init;
        return job;
      };
      fs::remove_all(trial_.Path("checkpoints"));
      const TrialResult undisturbed = Complete(with(Job()));
      fs::remove_all(trial_.Path("checkpoints"));
      EXPECT_FALSE(Run(with(Job()), 7).outcome.has_value());
      const auto saved = SafetensorsFile::Open(CheckpointFolder() + "/training_state.safetensors");
      ASSERT_TRUE(saved.ok()) << saved.status();
      EXPECT_EQ(saved->Find("model.bert.embeddings.word_embeddings.weight"), nullptr);
      EXPECT_NE(saved->Find("model.classifier.weight"), nullptr);
      fs::remove_all(Job().output_dir);
      ExpectEqual(Complete(with(Job(2))), undisturbed);
      EXPECT_THAT(Logs(), Contains(HasSubstr("goes on after step 7")));
    }
  }
}

TEST_F(ResumeTest, ManyAttemptsAddUpToOne) {
  for (const bool unpadded : {false, true}) {
    const auto job = [&](int64_t attempt) {
      TrainerJob some = Job(attempt);
      some.task.params["memory.unpadded"] = unpadded;
      return some;
    };
    fs::remove_all(trial_.Path("checkpoints"));
    const TrialResult undisturbed = Complete(job(1));
    fs::remove_all(trial_.Path("checkpoints"));
    int64_t attempt = 1;
    for (const int64_t steps : {2, 3, 1, 0, 1, 6, 4}) {
      EXPECT_FALSE(Run(job(attempt++), steps).outcome.has_value());
    }
    ExpectEqual(Complete(job(attempt)), undisturbed);
  }
}

TEST_F(ResumeTest, CheckpointsComeEveryNSteps) {
  TrainerJob job = Job();
  job.checkpoints.every_steps = 5;
  Complete(job);
  std::vector<int64_t> steps;
  for (const CheckpointMessage& message : events_.All<CheckpointMessage>()) {
    if (message.kind == "resume") steps.push_back(message.step);
  }
  EXPECT_THAT(steps, ElementsAre(5, 10, 15));
  EXPECT_THAT(CheckpointFolder(), HasSubstr("00000015-1"));
}

TEST_F(ResumeTest, CheckpointsComeWithTime) {
  TrainerJob job = Job();
  job.checkpoints.every = absl::Nanoseconds(1);
  Complete(job);
  EXPECT_THAT(CheckpointFolder(), HasSubstr("00000018-1"));
}

TEST_F(ResumeTest, WhatIsSavedAlreadyIsNotSavedAgain) {
  TrainerJob job = Job();
  EXPECT_FALSE(Run(job, 0).outcome.has_value());
  EXPECT_THAT(events_.All<CheckpointMessage>(), IsEmpty()) << "no step was done";
  job.checkpoints.every_steps = 3;
  EXPECT_FALSE(Run(job, 3).outcome.has_value());
  EXPECT_THAT(events_.All<CheckpointMessage>(), SizeIs(1));
  EXPECT_FALSE(Run(Job(2), 0).outcome.has_value());
  EXPECT_THAT(events_.All<CheckpointMessage>(), IsEmpty()) << "it is where it was";
}

TEST_F(ResumeTest, ProgressSaysHowLongSavingMayTake) {
  TrainerJob job = Job();
  Complete(job);
  const absl::Duration both = events_.All<ProgressMessage>().front().stop_time;
  job.checkpoints.folder.clear();
  Complete(job);
  const absl::Duration best_alone = events_.All<ProgressMessage>().front().stop_time;
  const auto weights = fs::file_size(job.output_dir + "/best/model.safetensors");
  EXPECT_GT(best_alone, absl::Seconds(static_cast<double>(weights) / 1.1 / (25 << 20)));
  EXPECT_LT(best_alone, absl::Seconds(static_cast<double>(weights) / (25 << 20)));
  EXPECT_GT(both, 3.5 * best_alone) << "weights, and two moments of each";
}

TEST_F(ResumeTest, AStopThatAsksForNoneLeavesNone) {
  StopAfter stop(3, /*checkpoint=*/false);
  EXPECT_FALSE(Run(Job(), stop).outcome.has_value());
  EXPECT_FALSE(fs::exists(trial_.Path("checkpoints")));
}

TEST_F(ResumeTest, ATornCheckpointIsPassedOver) {
  const TrialResult undisturbed = Complete(Job());
  fs::remove_all(trial_.Path("checkpoints"));
  Run(Job(), 5);
  const std::string good = CheckpointFolder();
  const std::string torn = trial_.Path("checkpoints/tiny/000042/00000011-1");
  fs::copy(good, torn, fs::copy_options::recursive);
  fs::resize_file(torn + "/training_state.safetensors", 1000);
  ExpectEqual(Complete(Job(2)), undisturbed);
  EXPECT_THAT(Logs(), Contains(HasSubstr("00000011-1 cannot be used")));
  EXPECT_THAT(Logs(), Contains(HasSubstr("goes on after step")));
}

TEST_F(ResumeTest, WithoutACheckpointItStartsAnewAndSaysSo) {
  const TrialResult undisturbed = Complete(Job());
  fs::remove_all(trial_.Path("checkpoints"));
  ExpectEqual(Complete(Job(2)), undisturbed);
  EXPECT_THAT(Logs(), ElementsAre(HasSubstr("finds no checkpoint below")));
  EXPECT_THAT(events_.Stages(), Contains("Restarted"));
}

TEST_F(ResumeTest, WithoutAFolderItStartsAnewAndSaysSo) {
  TrainerJob job = Job(1);
  job.checkpoints.folder.clear();
  Complete(job);
  EXPECT_THAT(Logs(), IsEmpty());
  EXPECT_THAT(events_.Stages(), Not(Contains("Restarted")));
  job.attempt = AttemptNumber{2};
  Complete(job);
  EXPECT_THAT(Logs(), ElementsAre("attempt 2 has no folder for checkpoints: it starts the trial "
                                  "from the beginning"));
  EXPECT_THAT(events_.Stages(), Contains("Restarted"));
}

TEST_F(ResumeTest, TheAttemptsRecordSaysFromWhereItGoesOn) {
  Run(Job(), 5);
  EXPECT_THAT(events_.Stages(), Not(Contains("Resumed")));
  Run(Job(2), 3);
  const std::vector<MemoryMessage> stages = events_.All<MemoryMessage>();
  const auto resumed = std::find_if(stages.begin(), stages.end(), [](const MemoryMessage& stage) {
    return stage.stage == "Resumed";
  });
  ASSERT_NE(resumed, stages.end());
  EXPECT_EQ(resumed->step, 5);
  const auto kept = events_.All<CheckpointMessage>();
  ASSERT_THAT(kept, Not(IsEmpty()));
  EXPECT_EQ(kept[0].path, Job(2).output_dir + "/best")
      << "it has an earlier attempt's best weights";
}

TEST_F(ResumeTest, ACheckpointOfAnotherConfigurationIsPassedOver) {
  Run(Job(), 5);
  TrainerJob other = Job(2);
  other.task.params["train.lr"] = 2e-3;
  Complete(other);
  EXPECT_THAT(Logs(), Contains(HasSubstr("it is of another configuration: params: expected")));
  TrainerJob shorter = Job(2);
  shorter.task.trainer.train = trial_.Write("short.jsonl", TinyRows(40, 1));
  Complete(shorter);
  EXPECT_THAT(Logs(), Contains(HasSubstr("train_rows: expected 40, found 48")));
}

TEST_F(ResumeTest, ABrokenStateIsPassedOverWhole) {
  const TrialResult undisturbed = Complete(Job());
  for (const char* state : {"{", "[]", R"({"version":7})", R"({"version":1,"loop":3})"}) {
    SCOPED_TRACE(state);
    fs::remove_all(trial_.Path("checkpoints"));
    Run(Job(), 5);
    const std::string folder = CheckpointFolder();
    std::ofstream(folder + "/state.json") << state;
    // The manifest says no more of it than that it is there.
    nlohmann::json manifest = nlohmann::json::parse(std::ifstream(folder + "/manifest.json"));
    manifest["files"].erase("state.json");
    std::ofstream(folder + "/manifest.json") << manifest;
    ExpectEqual(Complete(Job(2)), undisturbed);
    EXPECT_THAT(Logs(), Contains(HasSubstr("cannot be used")));
  }
}

TEST_F(ResumeTest, APlanThatWasFoundTheHardWayIsKept) {
  TrainerJob job = Job();
  TrainerJob smaller = job;
  smaller.task.plan.micro_batch = 4;
  smaller.checkpoints.folder.clear();
  const Bytes needs_half = Run(smaller).memory.live_peak;
  job.task.limit = needs_half;
  const OutcomeMessage stopped = Run(job, 10);
  ASSERT_LT(stopped.final_plan.micro_batch, 8);
  TrainerJob again = Job(2);
  again.task.limit = job.task.limit;
  const OutcomeMessage resumed = Run(again);
  EXPECT_EQ(resumed.final_plan, stopped.final_plan);
  EXPECT_EQ(resumed.memory.num_ooms, 0);
}

TEST_F(ResumeTest, ALargerCardGetsItsOwnPlan) {
  TrainerJob job = Job();
  job.task.plan.micro_batch = 4;
  job.task.limit = GiB(1);
  Run(job, 5);
  TrainerJob again = Job(2);
  again.task.limit = GiB(2);
  EXPECT_EQ(Run(again).final_plan.micro_batch, 8);
}

TEST_F(ResumeTest, ResultsOutliveADiskThatTakesNoWeights) {
  TrainerJob job = Job();
  job.output_dir = trial_.Write("a_file", "");
  const OutcomeMessage message = Run(job);
  ASSERT_TRUE(std::holds_alternative<Completed>(message.outcome.value()));
  EXPECT_EQ(std::get<Completed>(*message.outcome).model_path, "");
  EXPECT_THAT(Logs(), Contains(HasSubstr("cannot save the best weights, of step 4")));
}

TEST_F(ResumeTest, AFullDiskKeepsTheEarlierBestWeights) {
  const TrialResult undisturbed = Complete(Job());
  const std::vector<CheckpointMessage> saved = events_.All<CheckpointMessage>();
  ASSERT_GT(saved.size(), 1u) << "a later measurement was better";
  TrainerJob job = Job();
  const auto bytes = static_cast<int64_t>(undisturbed.weights.size());
  const SmallDisk disk(Bytes{bytes + bytes / 2});
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  job.output_dir = disk.path();
  const OutcomeMessage message = Run(job);
  ASSERT_TRUE(std::holds_alternative<Completed>(message.outcome.value()));
  EXPECT_EQ(std::get<Completed>(*message.outcome).model_path, "") << "those are not its weights";
  EXPECT_THAT(events_.All<CheckpointMessage>(),
              ElementsAre(testing::Field(&CheckpointMessage::step, saved[0].step)));
  EXPECT_THAT(Logs(), Contains(HasSubstr("No space left on device; earlier ones are kept")));
  EXPECT_TRUE(SafetensorsFile::Open(disk.path() + "/best/model.safetensors").ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(disk.path()), {}), 1) << "nothing half-written";
}

TEST_F(ResumeTest, WeightsThatAreNotTheBestOnesAreNotTakenForThemLater) {
  TrainerJob job = Job();
  const TrialResult undisturbed = Complete(job);
  const auto bytes = static_cast<int64_t>(undisturbed.weights.size());
  const SmallDisk disk(Bytes{bytes + bytes / 2});
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  job.output_dir = disk.path();
  for (int64_t step = 1; step < 18; ++step) {
    SCOPED_TRACE(step);
    for (const auto& entry : fs::directory_iterator(disk.path())) fs::remove_all(entry);
    fs::remove_all(trial_.Path("checkpoints"));
    EXPECT_FALSE(Run(job, step).outcome.has_value());
    const bool refused = !Logs().empty();
    const TrialResult resumed = Complete(Job(2));
    const bool better =
        std::any_of(events_.messages.begin(), events_.messages.end(), [](const UpMessage& message) {
          const auto* kept = std::get_if<CheckpointMessage>(&message);
          return kept != nullptr && kept->kind == "best";
        });
    EXPECT_EQ(std::get<Completed>(*resumed.outcome.outcome).model_path.empty(), refused && !better);
  }
}

TEST_F(ResumeTest, AFullDiskKeepsTheLastCheckpoint) {
  TrainerJob job = Job();
  job.checkpoints.every_steps = 5;
  Complete(job);
  const auto bytes =
      static_cast<int64_t>(fs::file_size(CheckpointFolder() + "/training_state.safetensors") +
                           fs::file_size(CheckpointFolder() + "/best/model.safetensors"));
  const SmallDisk disk(Bytes{bytes + bytes / 2});
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  job.checkpoints.folder = disk.path() + "/tiny/000042";
  EXPECT_FALSE(Run(job, 16).outcome.has_value());
  EXPECT_THAT(Logs(), Contains(HasSubstr("the one of step 5 is kept; training goes on")));
  TrainerJob again = Job(2);
  again.checkpoints.folder = job.checkpoints.folder;
  Complete(again);
  EXPECT_THAT(Logs(), Contains(HasSubstr("goes on after step 5")));
}

TEST_F(ResumeTest, ResultsOutliveADiskThatTakesNoCheckpoint) {
  TrainerJob job = Job();
  job.checkpoints = {.folder = trial_.Write("a_file", "") + "/sub", .every_steps = 1};
  EXPECT_TRUE(std::holds_alternative<Completed>(Run(job).outcome.value()));
  EXPECT_THAT(Logs(), ElementsAre(HasSubstr("cannot save a checkpoint after step 1")));  // once
}

}  // namespace
}  // namespace hpo::trainer
