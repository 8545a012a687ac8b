#include "server/scheduler/trial_scheduler.h"

#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/base/steady_wait.h"
#include "server/studies/study_loader.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

// How often an error that stays is logged.
constexpr absl::Duration kSayAgain = absl::Minutes(1);

}  // namespace

absl::StatusOr<std::unique_ptr<TrialScheduler>> TrialScheduler::Create(std::unique_ptr<Store> store,
                                                                       const Clock& clock,
                                                                       SchedulerOptions options) {
  HPO_ASSIGN_OR_RETURN(ServerEpoch epoch, BeginEpoch(*store, clock.Now()));
  std::unique_ptr<TrialScheduler> scheduler(
      new TrialScheduler(std::move(store), std::move(epoch), clock, std::move(options)));
  SchedulerState& state = scheduler->state_;
  HPO_RETURN_IF_ERROR(
      state.store->Read([&](Database& database) { return LoadStudies(state, database); }));
  if (state.options.tick_interval > absl::ZeroDuration()) {
    scheduler->ticker_ = std::thread([raw = scheduler.get()] { raw->TickLoop(); });
  }
  return scheduler;
}

TrialScheduler::TrialScheduler(std::unique_ptr<Store> store, ServerEpoch epoch, const Clock& clock,
                               SchedulerOptions options)
    : state_(std::move(store), std::move(epoch), clock, std::move(options)) {}

TrialScheduler::~TrialScheduler() {
  state_.work.Drain();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (ticker_.joinable()) ticker_.join();
  sweeper_.StoreWallClocks();
}

void TrialScheduler::TickLoop() {
  std::string said;
  absl::Duration said_at;
  for (bool first = true;; first = false) {
    {
      // At once after a start: clients may have ended before it.
      const absl::Duration pause = first ? absl::ZeroDuration() : state_.options.tick_interval;
      absl::MutexLock lock(&mutex_);
      AwaitSteadily(mutex_, absl::Condition(&stopping_), pause);
      if (stopping_) return;
    }
    const absl::Status ticked = sweeper_.Tick();
    // What is wrong with the whole database, the server says itself (server/health_log.h).
    if (ticked.ok() || !state_.store->trouble().empty()) {
      said.clear();
      continue;
    }
    const absl::Duration now = state_.clock.Monotonic();
    if (ticked.message() == said && now - said_at < kSayAgain) continue;
    said = std::string(ticked.message());
    said_at = now;
    spdlog::error("leases not checked: {}", said);
  }
}

}  // namespace hpo::server
