#include "worker/agent/preflight/preflight_thread.h"

#include <poll.h>

#include "common/base/clock.h"
#include "spdlog/spdlog.h"
#include "worker/agent/process/poll_timeout.h"
#include "worker/agent/session/rpc_reaction.h"

namespace hpo::agent {

PreflightThread::PreflightThread(const PreflightServices* services, WorkerSession& session,
                                 StopSignal& stop, uint64_t seed, PreflightTimes times)
    : services_(services),
      session_(session),
      stop_(stop),
      times_(times),
      pauses_(times.first_retry, times.longest_retry, seed) {
  if (services_ != nullptr) thread_ = std::thread([this] { Run(); });
}

PreflightThread::~PreflightThread() {
  ending_ = true;
  end_.Notify();
  if (thread_.joinable()) thread_.join();
}

void PreflightThread::Run() {
  while (!WaitForStop(absl::ZeroDuration())) AskAndRun();
}

bool PreflightThread::WaitForStop(absl::Duration timeout) {
  if (ending_ || stop_.raised()) return true;
  if (timeout > absl::ZeroDuration()) {
    pollfd events[] = {{.fd = end_.fd(), .events = POLLIN, .revents = 0},
                       {.fd = stop_.fd(), .events = POLLIN, .revents = 0}};
    poll(events, 2, PollTimeout(timeout));
  }
  return ending_ || stop_.raised();
}

void PreflightThread::AskAndRun() {
  const SystemClock clock;
  const absl::Duration asked_at = clock.Monotonic();
  const std::string session = session_.current().session;
  const absl::StatusOr<std::optional<Preflight>> asked = services_->client.AcquirePreflight(
      session, times_.wait, [this] { return WaitForStop(absl::ZeroDuration()); });
  if (!asked.ok()) {
    if (ReactionTo(Rpc::kAcquirePreflight, asked.status(), "") == Reaction::kRegisterAgain) {
      session_.Renew(session, services_->client).IgnoreError();
    }
    PauseAfter(asked.status());
    return;
  }
  if (!asked->has_value()) {
    // A server that drains does not wait.
    if (clock.Monotonic() - asked_at < times_.wait / 2) WaitForStop(pauses_.Next());
    return;
  }
  pauses_.Reset();
  const std::optional<PreflightReport> report = services_->runner.Run(
      **asked, [this](absl::Duration timeout) { return WaitForStop(timeout); });
  if (report.has_value()) Deliver(session, *report);
}

void PreflightThread::Deliver(const std::string& session, const PreflightReport& report) {
  while (!WaitForStop(absl::ZeroDuration())) {
    const absl::Status told = services_->client.ReportPreflight(session, report);
    if (told.ok()) {
      pauses_.Reset();
      return;
    }
    // A server that was restarted has let go of what it waited for.
    const bool renewed = session_.current().session != session;
    if (renewed || ReactionTo(Rpc::kReportPreflight, told, "") == Reaction::kGiveUp) {
      spdlog::debug("the report of a dry run is dropped: {}", told.ToString());
      return;
    }
    PauseAfter(told);
  }
}

// The loop says when the server is away.
void PreflightThread::PauseAfter(const absl::Status& failure) {
  spdlog::debug("dry runs: {}", failure.ToString());
  WaitForStop(absl::IsUnimplemented(failure) ? absl::Minutes(1) : pauses_.Next());
}

}  // namespace hpo::agent
