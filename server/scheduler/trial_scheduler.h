// Ask, report, tell, and all that people have a server do with its studies: the parts that do it,
// over one state, and the thread that lets time pass. Decisions are made by pure functions (lease,
// retry_policy, capability, placement) and by a study's sampler and pruner; the parts have the side
// effects. Trials are written through one writer (trial_writer.h).
#pragma once

#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "server/dispatch/preflight_desk.h"
#include "server/dispatch/preflight_dispatcher.h"
#include "server/dispatch/trial_dispatcher.h"
#include "server/leases/lease_control.h"
#include "server/leases/lease_sweeper.h"
#include "server/leases/worker_sessions.h"
#include "server/orders/study_archiver.h"
#include "server/orders/study_commands.h"
#include "server/orders/study_orders.h"
#include "server/orders/trial_enqueuer.h"
#include "server/results/result_recorder.h"
#include "server/storage/store.h"
#include "server/studies/scheduler_state.h"

namespace hpo::server {

// Thread-safe, as its parts are; the sweeper is the ticking thread's where there is one.
class TrialScheduler {
 public:
  // Starts an epoch: rebuilds every study from the database and renews its leases (lease.h). What
  // cannot be read is left out, logged, and named by DescribeStudy.
  // `clock` outlives the scheduler.
  static absl::StatusOr<std::unique_ptr<TrialScheduler>> Create(std::unique_ptr<Store> store,
                                                                const Clock& clock,
                                                                SchedulerOptions options = {});
  TrialScheduler(const TrialScheduler&) = delete;
  // Wakes every waiting call. Leases stay.
  ~TrialScheduler();

  // Store, studies and workers; its `work` is drained at the end of a server: nothing more is
  // handed out, results are still taken.
  SchedulerState& state() { return state_; }
  const SchedulerState& state() const { return state_; }

  StudyCommands& commands() { return commands_; }
  StudyArchiver& archiver() { return archiver_; }
  StudyOrders& orders() { return orders_; }
  TrialEnqueuer& enqueuer() { return enqueuer_; }

  WorkerSessions& sessions() { return sessions_; }
  TrialDispatcher& dispatcher() { return dispatcher_; }
  PreflightDispatcher& preflights() { return preflights_; }
  ResultRecorder& results() { return results_; }
  LeaseSweeper& sweeper() { return sweeper_; }

 private:
  TrialScheduler(std::unique_ptr<Store> store, ServerEpoch epoch, const Clock& clock,
                 SchedulerOptions options);

  void TickLoop();

  SchedulerState state_;
  StudyCommands commands_{state_};
  StudyArchiver archiver_{state_};
  StudyOrders orders_{state_};
  TrialEnqueuer enqueuer_{state_};
  LeaseControl leases_{state_};
  WorkerSessions sessions_{state_, leases_};
  PreflightDesk desk_{state_.epoch.number};
  TrialDispatcher dispatcher_{state_, leases_, desk_};
  PreflightDispatcher preflights_{state_, leases_, desk_};
  ResultRecorder results_{state_, leases_};
  LeaseSweeper sweeper_{state_, leases_};

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread ticker_;
};

}  // namespace hpo::server
