#include "tests/chaos/simulation/simulated_server.h"

#include <filesystem>
#include <utility>

#include "common/base/status.h"
#include "tests/chaos/simulation/study_image.h"

namespace hpo {

absl::StatusOr<std::unique_ptr<SimulatedServer>> SimulatedServer::Start(
    const server::LeasePolicy& lease, const TryAgain& try_again) {
  std::unique_ptr<SimulatedServer> server(new SimulatedServer(lease));
  for (;;) {
    const absl::Status opened = server->Open();
    if (opened.ok()) return server;
    const bool for_now = absl::IsUnavailable(opened) && try_again;
    if (!for_now || !try_again(opened)) return opened;
  }
}

absl::Status SimulatedServer::Open() {
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<server::Store> store,
                       server::Store::Open(database_->path()));
  server::SchedulerOptions options;
  options.lease = lease_;
  options.tick_interval = absl::ZeroDuration();
  HPO_ASSIGN_OR_RETURN(scheduler_,
                       server::TrialScheduler::Create(std::move(store), clock_, options));
  return absl::OkStatus();
}

absl::Status SimulatedServer::Restart() {
  HPO_ASSIGN_OR_RETURN(const StudyImage memory, TakeImage(*scheduler_));
  scheduler_.reset();
  HPO_RETURN_IF_ERROR(Open());
  HPO_ASSIGN_OR_RETURN(const StudyImage rebuilt, TakeImage(*scheduler_));
  return CompareImages(memory, rebuilt);
}

absl::Status SimulatedServer::Crash() {
  HPO_ASSIGN_OR_RETURN(const StudyImage memory, TakeImage(*scheduler_));
  auto copy = std::make_unique<TemporaryDatabase>();
  for (const char* suffix : {"", "-wal"}) {
    const std::string from = database_->path() + suffix;
    if (std::filesystem::exists(from)) {
      std::filesystem::copy_file(from, copy->path() + suffix);
    }
  }
  scheduler_.reset();
  database_ = std::move(copy);
  HPO_RETURN_IF_ERROR(Open());
  HPO_ASSIGN_OR_RETURN(const StudyImage rebuilt, TakeImage(*scheduler_));
  return CompareImages(memory, rebuilt);
}

}  // namespace hpo
