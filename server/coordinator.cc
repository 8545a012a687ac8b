#include "server/coordinator.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "server/http/metrics.h"
#include "server/storage/store.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

absl::Status CreateFolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot create the database's folder ", folder.string(), ": ", error.message()));
}

}  // namespace

Coordinator::Coordinator(std::unique_ptr<TrialScheduler> scheduler, Store& store,
                         std::unique_ptr<MlflowLogger> mlflow, const Clock& clock)
    : mlflow_(std::move(mlflow)),
      scheduler_(std::move(scheduler)),
      studies_(*scheduler_),
      workers_(*scheduler_),
      admin_(*scheduler_),
      fleet_(*scheduler_),
      optuna_(store, studies_.queries(), clock),
      clock_(clock) {
  for (const std::string& found : admin_.GetServer().damage) {
    spdlog::error("the database is damaged: {}", found);
  }
  if (mlflow_ == nullptr) return;
  mlflow_->Start(
      [this](const TrialId& trial) {
        return studies_.queries().GetTrial(trial.study, trial.number);
      },
      [this](const std::string& study) { return studies_.queries().GetStudy(study); });
}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(const CoordinatorOptions& options,
                                                                const Clock& clock) {
  // Before anything is written: a second server must leave no trace.
  HPO_RETURN_IF_ERROR(CheckFree(options.listen));
  if (options.metrics) HPO_RETURN_IF_ERROR(CheckFree(*options.metrics));
  HPO_RETURN_IF_ERROR(CreateFolderOf(options.database));
  for (;;) {
    absl::StatusOr<std::unique_ptr<Coordinator>> started = TryStart(options, clock);
    const bool for_now = absl::IsUnavailable(started.status()) && options.try_again;
    if (!for_now || !options.try_again(started.status())) return started;
  }
}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::TryStart(
    const CoordinatorOptions& options, const Clock& clock) {
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, Store::Open(options.database));
  Store& stored = *store;
  SchedulerOptions scheduling = options.scheduler;
  std::unique_ptr<MlflowLogger> mlflow;
  if (!options.mlflow.empty()) {
    mlflow = std::make_unique<MlflowLogger>(options.mlflow);
    scheduling.on_trial_changed = [logger = mlflow.get()](const TrialId& trial) {
      logger->Changed(trial);
    };
  }
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<TrialScheduler> scheduler,
                       TrialScheduler::Create(std::move(store), clock, scheduling));
  std::unique_ptr<Coordinator> coordinator(
      new Coordinator(std::move(scheduler), stored, std::move(mlflow), clock));
  for (const StudySpec& study : options.studies) {
    const absl::Status added =
        coordinator->studies_.CreateStudy(study, /*validate_only=*/false, RandomId()).status();
    // The scheduler has said so; the other studies go on.
    if (!absl::IsDataLoss(added)) HPO_RETURN_IF_ERROR(added);
  }
  HPO_ASSIGN_OR_RETURN(
      coordinator->rpc_,
      RpcServer::Start(options.listen, coordinator->studies_, coordinator->workers_,
                       coordinator->admin_, coordinator->fleet_, coordinator->optuna_));
  if (options.metrics) {
    HPO_ASSIGN_OR_RETURN(
        coordinator->metrics_, MetricsEndpoint::Start(*options.metrics, [&served = *coordinator] {
          return MetricsText(
              served.admin_.GetServer(),
              served.studies_.queries().ListStudies().value_or(std::vector<StudyStatus>()));
        }));
  }
  return coordinator;
}

void Coordinator::LookAtHealth() {
  const std::string trouble = admin_.GetServer().trouble;
  if (const auto line = health_log_.Look(trouble, clock_.Monotonic())) {
    spdlog::log(trouble.empty() ? spdlog::level::info : spdlog::level::err, "{}", *line);
  }
  rpc_->SetServing(trouble.empty());
}

Coordinator::~Coordinator() {
  Drain(absl::ZeroDuration());
  if (mlflow_ != nullptr) mlflow_->Finish(absl::ZeroDuration());
}

void Coordinator::Drain(absl::Duration grace) {
  if (rpc_ != nullptr) rpc_->StopAdvertising();
  scheduler_->state().work.Drain();
  if (rpc_ != nullptr) rpc_->Shutdown(grace);
  if (mlflow_ != nullptr) mlflow_->Finish(grace);
}

}  // namespace hpo::server
