#include "worker/trainer/program/run_trial.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "memory/plan/memory_plan.h"
#include "nlohmann/json.hpp"
#include "worker/trainer/base/trial_log.h"
#include "worker/trainer/checkpoints/trial_checkpoints.h"
#include "worker/trainer/device/precision.h"
#include "worker/trainer/memory/error_text.h"
#include "worker/trainer/memory/stage_log.h"
#include "worker/trainer/models/adapters/adapters.h"
#include "worker/trainer/models/adapters/frozen_parameters.h"
#include "worker/trainer/models/files/model_folder.h"
#include "worker/trainer/models/files/weight_files.h"
#include "worker/trainer/models/files/weights.h"
#include "worker/trainer/optimizers/optimizer.h"
#include "worker/trainer/program/trial_checks.h"
#include "worker/trainer/tasks/make_task.h"
#include "worker/trainer/training/oom_outcome.h"
#include "worker/trainer/training/train_loop.h"

namespace hpo::trainer {
namespace {

Failed Failure(FailureClass failure_class, const absl::Status& status) {
  return Failed{.failure_class = failure_class, .message = std::string(status.message())};
}

// What a trial meets besides its device.
struct Surroundings {
  EventSink& events;
  StopSource& stops;
  const text::TokenCache& tokens;
};

// A trial from its job to its outcome, one step after the other.
class TrialRun {
 public:
  TrialRun(const TrainerJob& job, TrialDevice& device, const Surroundings& around, StageLog& log)
      : job_(job), device_(device), around_(around), events_(around.events), log_(log) {}

  TrainLoopResult Run() {
    if (auto failure = Prepare()) return Ended(*std::move(failure));
    if (auto refusal = Admit()) return Ended(*std::move(refusal));
    device_.memory->SetLimit(job_.task.limit);
    AllowTf32(options_.tf32);
    if (auto failure = Build()) return Ended(*std::move(failure));
    return Train();
  }

  const MemoryPlan& plan() const { return plan_; }

 private:
  TrainLoopResult Ended(TrialOutcome outcome) const {
    return {.outcome = std::move(outcome), .final_plan = plan_, .clean = clean_};
  }

  std::optional<TrialOutcome> Prepare() {
    auto options = ReadTrainingOptions(job_.task.params, job_.task.seed);
    if (!options.ok()) return Failure(FailureClass::kBadConfiguration, options.status());
    options_ = *std::move(options);
    absl::Status valid = CheckJob(job_, options_);
    if (valid.ok()) valid = CheckPrecision(options_, device_.device);
    if (!valid.ok()) return Failure(FailureClass::kBadConfiguration, valid);
    auto folder = OpenModelFolder(job_, options_);
    if (!folder.ok()) return Failure(FailureClass::kBadModel, folder.status());
    folder_ = *std::move(folder);
    valid = memory::CheckUnpadded(options_.config, folder_.shape,
                                  *ParseTaskKind(job_.task.trainer.task));
    if (valid.ok()) valid = memory::CheckTrainedParts(options_.config, folder_.shape);
    if (!valid.ok()) return Failure(FailureClass::kBadConfiguration, valid);
    auto data = LoadTextData(job_, options_, folder_, around_.tokens);
    if (!data.ok()) return Failure(FailureClass::kBadData, data.status());
    data_ = *std::move(data);
    for (const std::string& warning : DataWarnings(job_, options_.config, folder_.shape, data_)) {
      TellWarning(events_, job_.trial, warning);
    }
    estimate_input_ = EstimateInputOf(folder_, data_, options_, device_.profile);
    return std::nullopt;
  }

  // The plan to start with, or why the trial does not start.
  std::optional<TrialOutcome> Admit() {
    plan_ = memory::StartingPlan(options_.config, job_.task.plan, job_.task.memory.policy);
    if (!IsAdmitted(job_)) return std::nullopt;
    const absl::StatusOr<memory::PlannedMemory> planned = FitTrial(job_, estimate_input_, plan_);
    if (!planned.ok()) return Failure(FailureClass::kBadConfiguration, planned.status());
    plan_ = planned->plan;
    LogInfo(absl::StrFormat("Trial %d - estimate: %s of %s allowed, micro-batch %d in %d parts",
                            job_.trial.value, FormatBytes(planned->estimate.needed_limit),
                            FormatBytes(job_.task.limit), plan_.micro_batch, plan_.NumParts()));
    if (planned->fits) return std::nullopt;
    OutOfMemory refusal = Refusal(*planned, job_.task.limit);
    LogError(FormatOomBlock(job_, device_.memory->Describe().kind, refusal.message));
    return refusal;
  }

  // Model and optimizer states, all of them before the first step.
  std::optional<TrialOutcome> Build() {
    log_.EnterPhase("model");
    absl::Status status;
    const BatchAttempt attempt = TryBatch(
        *device_.memory, device_.memory->Read().live, [&] { status = BuildOnDevice(); },
        [&] {
          optimizer_.reset();
          task_.reset();
        });
    if (!attempt.fault.has_value()) {
      if (!status.ok()) return Failure(FailureClass::kBadModel, status);
      return std::nullopt;
    }
    clean_ = attempt.clean;
    if (attempt.fault->type == MemoryFaultType::kDeviceLost) {
      return DeviceLostOutcome(*attempt.fault, log_.phase(), 0);
    }
    log_.OutOfMemoryMet(attempt.use, NeededAtLeast(*attempt.fault, attempt.use),
                        job_.task.predicted, 0);
    OutOfMemory oom = OutOfMemoryOutcome(
        *attempt.fault, attempt.use, {.job = job_, .phase = log_.phase(), .step = 0, .plan = plan_},
        device_.memory->Describe().kind);
    // What was to come would not have fitted either: the same in another process is no help.
    const bool too_big = job_.task.limit > Bytes{} && job_.task.predicted > job_.task.limit;
    if (oom.kind == OomKind::kFragmentation && too_big) oom.kind = OomKind::kConfiguration;
    return oom;
  }

  absl::Status BuildOnDevice() {
    const memory::TrainingConfig& config = options_.config;
    HPO_ASSIGN_OR_RETURN(task_, MakeTask(folder_.shape, options_,
                                         {.data = data_,
                                          .tokenizer = folder_.tokenizer.get(),
                                          .max_positions = folder_.shape.max_positions,
                                          .unpadded = config.unpadded,
                                          .device = device_.device}));
    torch::nn::Module& model = task_->module();
    std::vector<std::string> to_initialize = ParameterNames(model);
    if (job_.task.trainer.model_init == "pretrained") {
      HPO_ASSIGN_OR_RETURN(const std::vector<SafetensorsFile> weights, OpenWeights(folder_.path));
      HPO_ASSIGN_OR_RETURN(LoadReport report, LoadParameters(model, weights));
      TellOtherHead(report);
      to_initialize = std::move(report.missing);
    }
    InitializeParameters(model, to_initialize, folder_.shape.initializer_range,
                         folder_.shape.pad_token_id, options_.seed);
    FreezeParameters(model, folder_.shape, config.freezing);
    if (config.lora.has_value()) {
      HPO_RETURN_IF_ERROR(
          AddAdapters(model, folder_.shape, *config.lora, options_.seed, device_.device));
    }
    log_.EnterPhase("optimizer states");
    optimizer_ =
        MakeOptimizer(DecayGroups(model, options_.weight_decay), {.kind = config.optimizer,
                                                                  .beta1 = options_.beta1,
                                                                  .beta2 = options_.beta2,
                                                                  .eps = options_.eps,
                                                                  .momentum = config.momentum});
    return absl::OkStatus();
  }

  // A checkpoint that was fine-tuned for another task.
  void TellOtherHead(const LoadReport& report) {
    constexpr size_t kMostNamed = 4;
    std::vector<std::string> names = report.other_head;
    if (names.empty()) return;
    if (names.size() > kMostNamed) {
      names.resize(kMostNamed);
      names.push_back("...");
    }
    TellWarning(
        events_, job_.trial,
        absl::StrCat("model ", job_.model_name, ": the checkpoint has the head of another task (",
                     absl::StrJoin(names, ", "), "), which is not used: the body is loaded",
                     report.missing.empty() ? "" : ", and the head is new"));
  }

  TrainLoopResult Train() {
    log_.Stage("Training Start", 0);
    TrialCheckpoints checkpoints(job_, DataIdentity(), task_->module(), *optimizer_, events_,
                                 clock_);
    TrainLoop loop({.job = job_,
                    .options = options_,
                    .data = data_,
                    .estimate_input = estimate_input_,
                    .device = device_.device,
                    .reads_late = device_.reads_late,
                    .memory = *device_.memory,
                    .task = *task_,
                    .optimizer = *optimizer_,
                    .log = log_,
                    .events = events_,
                    .stops = around_.stops,
                    .save_best = [&](int64_t step) { return SaveBest(step, checkpoints); },
                    .checkpoints = &checkpoints},
                   plan_);
    TrainLoopResult result = loop.Run();
    log_.Stage("Training End", 0);
    if (result.outcome.has_value()) {
      auto* const completed = std::get_if<Completed>(&*result.outcome);
      if (completed != nullptr && result.best_kept && std::filesystem::is_directory(BestFolder())) {
        completed->model_path = BestFolder();
      }
    }
    return result;
  }

  // Empty where nothing is to be kept.
  std::string BestFolder() const {
    return job_.output_dir.empty() ? "" : job_.output_dir + "/best";
  }

  // A result without its weights is better than none: a full disk does not end the trial.
  bool SaveBest(int64_t step, TrialCheckpoints& checkpoints) {
    if (job_.output_dir.empty()) return true;
    absl::Status saved = WriteBest();
    if (absl::IsResourceExhausted(saved) && checkpoints.MakeRoom()) saved = WriteBest();
    if (saved.ok()) {
      events_.Send(CheckpointMessage{.kind = "best", .path = BestFolder(), .step = step});
      return true;
    }
    TellWarning(
        events_, job_.trial,
        absl::StrCat("cannot save the best weights, of step ", step, ": ", saved.message(),
                     std::filesystem::is_directory(BestFolder()) ? "; earlier ones are kept" : "",
                     "; training goes on"));
    return false;
  }

  absl::Status WriteBest() {
    std::optional<AdapterFolderContents> adapter;
    if (const auto& lora = options_.config.lora; lora.has_value()) {
      adapter = {.options = *lora, .shape = folder_.shape, .model_name = job_.model_name};
      if (data_.task == TaskKind::kLanguageModeling) adapter->task_type = "CAUSAL_LM";
    }
    return WriteModelFolder(task_->module(),
                            {.source = folder_.path,
                             .config_json = folder_.config_json,
                             .role = RoleOf(data_),
                             .labels = data_.labels,
                             .head_sizes = options_.config.HeadSizes(),
                             .adapter = std::move(adapter),
                             .pad_id = data_.train.pad_id,
                             .quadruplets = task_->QuadrupletLines()},
                            BestFolder());
  }

  // What a checkpoint's data must have in common with this attempt's.
  nlohmann::json DataIdentity() const {
    return {{"labels", data_.labels},
            {"train_rows", data_.train.num_rows()},
            {"validation_rows", data_.validation.num_rows()},
            {"max_length", data_.max_length}};
  }

  const TrainerJob& job_;
  TrialDevice& device_;
  const Surroundings around_;
  EventSink& events_;
  StageLog& log_;
  TrainingOptions options_;
  ModelFolder folder_;
  TextData data_;
  memory::EstimateInput estimate_input_;
  MemoryPlan plan_;
  const SystemClock clock_;
  bool clean_ = true;
  std::unique_ptr<Task> task_;
  std::unique_ptr<Optimizer> optimizer_;
};

// What an exception that nobody below expected means for the trial.
TrainLoopResult UnexpectedEnd(const std::exception& error, const StageLog& log) {
  TrainLoopResult result;
  const std::optional<MemoryFault> fault = ClassifyError(error);
  if (fault.has_value() && fault->type == MemoryFaultType::kDeviceLost) {
    result.outcome = DeviceLostOutcome(*fault, log.phase(), 0);
  } else {
    result.outcome =
        Failed{.failure_class = FailureClass::kInternal,
               .message = absl::StrCat("in phase '", log.phase(), "': ", DescribeError(error))};
  }
  result.clean = false;
  return result;
}

TrainLoopResult RunAndCatch(const TrainerJob& job, TrialDevice& device, const Surroundings& around,
                            StageLog& log) {
  TrialRun run(job, device, around, log);
  try {
    return run.Run();
  } catch (const std::exception& error) {
    TrainLoopResult result = UnexpectedEnd(error, log);
    result.final_plan = run.plan();
    return result;
  }
}

// Whether live bytes are the baseline's again. What is above it is told.
bool IsAtBaseline(TrialDevice& device, StageLog& log) {
  try {
    GiveBack(device);
    const Bytes drift = device.memory->Read().live - device.baseline;
    if (drift > Bytes{}) log.LeftBehind(drift);
    return drift == Bytes{};
  } catch (const std::exception&) {
    return false;
  }
}

bool IsDeviceLost(const std::optional<TrialOutcome>& outcome) {
  const auto* const failed = outcome.has_value() ? std::get_if<Failed>(&*outcome) : nullptr;
  return failed != nullptr && failed->failure_class == FailureClass::kDeviceLost;
}

}  // namespace

OutcomeMessage RunTrial(const TrainerJob& job, TrialDevice& device, EventSink& events,
                        StopSource& stops, const text::TokenCache& tokens) {
  OutcomeMessage message;
  try {
    StageLog log(job, *device.memory, events);
    log.Stage("Trial Start", 0);
    TrainLoopResult result = RunAndCatch(job, device, {events, stops, tokens}, log);
    message.final_plan = result.final_plan;
    message.outcome = std::move(result.outcome);
    message.clean = IsAtBaseline(device, log) && result.clean;
    message.memory = log.Report();
    const bool success =
        message.outcome.has_value() && std::holds_alternative<Completed>(*message.outcome);
    if (success) log.Stage("Trial Success", 0);
  } catch (const std::exception& error) {
    message.clean = false;
    // Where the device was lost in the trial, that says more.
    if (!IsDeviceLost(message.outcome)) {
      message.outcome =
          Failed{.failure_class = FailureClass::kDeviceLost,
                 .message = absl::StrCat("the device does not answer: ", DescribeError(error))};
    }
  }
  if (!message.clean) {
    const MemoryReport& memory = message.memory;
    LogError(absl::StrCat(
        "Trial ", job.trial.value, " - this process cannot run another trial",
        memory.growth > Bytes{}
            ? absl::StrCat(": tensors take ", FormatBytes(memory.growth),
                           " more than before this one, since stage '", memory.growth_stage, "'")
            : ""));
  }
  return message;
}

}  // namespace hpo::trainer
