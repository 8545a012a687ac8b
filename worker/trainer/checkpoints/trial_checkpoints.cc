// Tested by tests/integration/test_resume.py.
#include "worker/trainer/checkpoints/trial_checkpoints.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "nlohmann/json.hpp"
#include "worker/trainer/base/trial_log.h"
#include "worker/trainer/checkpoints/checkpoint_state.h"
#include "worker/trainer/checkpoints/training_tensors.h"

namespace hpo::trainer {
namespace {

namespace fs = std::filesystem;

constexpr char kStateFile[] = "/state.json";
constexpr char kTensorFile[] = "/training_state.safetensors";
constexpr char kBestFolder[] = "/best";
// Written, synced and read back; a disk of a network that others use too.
constexpr Bytes kSlowDiskPerSecond = MiB(25);

// The same files under a second name where the disk can do that, else copies.
absl::Status LinkTree(const std::string& from, const std::string& to) {
  std::error_code error;
  constexpr auto kLinks = fs::copy_options::recursive | fs::copy_options::create_hard_links;
  fs::copy(from, to, kLinks, error);
  if (error) {
    fs::remove_all(to, error);
    fs::copy(from, to, fs::copy_options::recursive, error);
  }
  return error ? FileError(error.value(), to) : absl::OkStatus();
}

// What makes two attempts runs of one configuration.
nlohmann::json IdentityOf(const TrainerJob& job, nlohmann::json identity) {
  identity["study"] = job.study;
  identity["trial"] = job.trial.value;
  identity["params"] = ParamsToJson(job.task.params);
  identity["task"] = job.task.trainer.task;
  identity["epochs"] = job.task.trainer.epochs;
  identity["model_name"] = job.model_name;
  identity["model_init"] = job.task.trainer.model_init;
  identity["seed"] = job.task.seed;
  return identity;
}

}  // namespace

TrialCheckpoints::TrialCheckpoints(const TrainerJob& job, nlohmann::json identity,
                                   torch::nn::Module& model, Optimizer& optimizer,
                                   EventSink& events, const Clock& clock)
    : job_(job),
      identity_(IdentityOf(job, std::move(identity))),
      model_(model),
      optimizer_(optimizer),
      events_(events),
      clock_(clock),
      store_(job.checkpoints.folder, job.attempt, job.checkpoints.quota),
      size_{TrainingTensorBytes(model, optimizer)},
      saved_at_(clock.Monotonic()) {}

std::optional<LoopState> TrialCheckpoints::Restore() {
  if (job_.checkpoints.folder.empty()) {
    TellRestart("has no folder for checkpoints");
    return std::nullopt;
  }
  for (const Checkpoint& checkpoint : store_.List()) {
    absl::StatusOr<LoopState> state = Load(checkpoint);
    if (state.ok()) {
      saved_ = *state;
      saved_step_ = state->step;
      TellInfo(events_, job_.trial,
               absl::StrCat("attempt ", job_.attempt.value, " goes on after step ", state->step,
                            " from ", checkpoint.folder));
      const std::string best = job_.output_dir + kBestFolder;
      if (state->best_kept && !job_.output_dir.empty() && fs::is_directory(best)) {
        events_.Send(CheckpointMessage{.kind = "best", .path = best, .step = state->step});
      }
      return *std::move(state);
    }
    TellWarning(events_, job_.trial,
                absl::StrCat("the checkpoint ", checkpoint.folder,
                             " cannot be used: ", state.status().message()));
  }
  TellRestart(absl::StrCat("finds no checkpoint below ", job_.checkpoints.folder));
  return std::nullopt;
}

void TrialCheckpoints::TellRestart(const std::string& why) {
  if (job_.attempt.value == 1) return;
  TellWarning(events_, job_.trial,
              absl::StrCat("attempt ", job_.attempt.value, " ", why,
                           ": it starts the trial from the beginning"));
}

absl::StatusOr<LoopState> TrialCheckpoints::Load(const Checkpoint& checkpoint) {
  HPO_RETURN_IF_ERROR(store_.Verify(checkpoint));
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadFile(checkpoint.folder + kStateFile));
  HPO_ASSIGN_OR_RETURN(CheckpointState state, DecodeCheckpointState(text));
  HPO_RETURN_IF_ERROR(CheckIdentity(state.identity, identity_));
  const std::string best = job_.output_dir + kBestFolder;
  if (fs::is_directory(checkpoint.folder + kBestFolder) && !job_.output_dir.empty()) {
    std::error_code ignored;
    fs::remove_all(best, ignored);
    HPO_RETURN_IF_ERROR(LinkTree(checkpoint.folder + kBestFolder, best));
  }
  HPO_RETURN_IF_ERROR(LoadTrainingTensors(model_, optimizer_, checkpoint.folder + kTensorFile));
  optimizer_.SetNumSteps(state.optimizer_steps);
  return std::move(state.loop);
}

bool TrialCheckpoints::Due(int64_t step) const {
  const CheckpointSpec& spec = job_.checkpoints;
  if (spec.folder.empty()) return false;
  if (spec.every_steps > 0 && step - saved_step_ >= spec.every_steps) return true;
  return spec.every > absl::ZeroDuration() && clock_.Monotonic() - saved_at_ >= spec.every;
}

bool TrialCheckpoints::Save(const LoopState& state) {
  if (job_.checkpoints.folder.empty()) return false;
  if (state.step == 0 || state == saved_) return true;
  const absl::Duration began = clock_.Monotonic();
  CheckpointNotes notes;
  const absl::StatusOr<Checkpoint> written = store_.Write(
      state.step, size_, [&](const std::string& folder) { return Fill(state, folder); }, notes);
  // Also after a failure: it is tried again when the next one is due, not at each step.
  saved_step_ = state.step;
  saved_at_ = clock_.Monotonic();
  for (const std::string& note : notes) TellWarning(events_, job_.trial, note);
  if (!written.ok()) {
    if (!std::exchange(failing_, true)) {
      TellWarning(events_, job_.trial,
                  absl::StrCat("cannot save a checkpoint after step ", state.step, ": ",
                               written.status().message(), "; ", WhatStays()));
    }
    return false;
  }
  failing_ = false;
  saved_ = state;
  last_took_ = saved_at_ - began;
  LogInfo(absl::StrCat("Trial ", job_.trial.value, " - checkpoint after step ", state.step, " in ",
                       absl::FormatDuration(absl::Trunc(saved_at_ - began, absl::Milliseconds(1))),
                       ": ", written->folder));
  events_.Send(CheckpointMessage{.kind = "resume", .path = written->folder, .step = state.step});
  return true;
}

std::string TrialCheckpoints::WhatStays() const {
  const std::vector<Checkpoint> left = store_.List();
  return absl::StrCat(left.empty()
                          ? "there is no earlier one"
                          : absl::StrCat("the one of step ", left.front().step, " is kept"),
                      "; training goes on");
}

bool TrialCheckpoints::MakeRoom() {
  CheckpointNotes notes;
  const bool made = store_.MakeRoom(notes);
  for (const std::string& note : notes) TellWarning(events_, job_.trial, note);
  return made;
}

absl::Duration TrialCheckpoints::SaveTime() const {
  if (last_took_.has_value()) return 2 * *last_took_;
  int64_t bytes = job_.checkpoints.folder.empty() ? 0 : size_.count;
  if (!job_.output_dir.empty()) bytes += WeightBytes(model_);
  return absl::Seconds(static_cast<double>(bytes) / static_cast<double>(kSlowDiskPerSecond.count));
}

absl::Status TrialCheckpoints::Fill(const LoopState& state, const std::string& folder) const {
  HPO_RETURN_IF_ERROR(SaveTrainingTensors(model_, optimizer_, folder + kTensorFile));
  const std::string best = job_.output_dir + kBestFolder;
  if (!job_.output_dir.empty() && fs::is_directory(best)) {
    HPO_RETURN_IF_ERROR(LinkTree(best, folder + kBestFolder));
  }
  return WriteFileDurably(
      folder + kStateFile,
      EncodeCheckpointState(
          {.optimizer_steps = optimizer_.num_steps(), .loop = state, .identity = identity_}));
}

}  // namespace hpo::trainer
