// Measurements and memory records on their way to the server: measurements are sent as they come,
// records with them or within kRecordDelay; both are kept and sent again while it is away.
// One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/clock.h"
#include "common/worker_exchange.h"
#include "worker/agent/backoff.h"
#include "worker/agent/coordinator_client.h"
#include "worker/agent/worker_session.h"

namespace hpo {

// What the server made of a report.
struct ReportAnswer {
  enum class Verdict { kContinue, kStop, kLeaseLost };
  Verdict verdict = Verdict::kContinue;
  std::string pruner;                          // with kStop
  std::string why;                             // with kStop and kLeaseLost
  Directive directive = Directive::kContinue;  // as a heartbeat's
};

class ReportQueue {
 public:
  // `client` and `session` outlive the queue.
  ReportQueue(CoordinatorClient& client, WorkerSession& session, LeaseRef lease, Backoff retry)
      : client_(client), session_(session), lease_(std::move(lease)), retry_(retry) {}

  void AddMeasurement(const Measurement& measurement);
  void AddPlan(const MemoryPlan& plan);
  void AddOom();
  // Numbers the record. After kMostRecords of an attempt the rest is left out.
  void AddMemoryRecord(MemoryRecord record);

  static constexpr int64_t kMostRecords = 1000;
  static constexpr absl::Duration kRecordDelay = absl::Seconds(1);

  // Monotonic time of the next report; nullopt: there is nothing to report.
  std::optional<absl::Duration> due() const { return due_; }

  // Sends what is due; does nothing when nothing is.
  ReportAnswer SendIfDue();

  // What no report has carried: it goes with the result.
  void MoveUnsentTo(FinishRequest& result) {
    result.measurements = std::move(measurements_);
    result.memory_records = std::move(memory_records_);
  }
  // Tries once to send what no report has carried, of an attempt that has no result.
  void SendLast();

  int64_t num_ooms() const { return num_ooms_; }
  int64_t num_replans() const { return num_replans_; }

 private:
  ReportAnswer TakeFailure(const absl::Status& status, const std::string& session);

  CoordinatorClient& client_;
  WorkerSession& session_;
  const LeaseRef lease_;
  Backoff retry_;
  const SystemClock clock_;
  std::vector<Measurement> measurements_;
  std::vector<MemoryRecord> memory_records_;
  int64_t num_records_ = 0;
  std::optional<MemoryPlan> new_plan_;
  int64_t num_ooms_ = 0;
  int64_t num_replans_ = 0;
  std::optional<absl::Duration> due_;
  bool forgotten_ = false;  // the last report found the session or the lease unknown
};

}  // namespace hpo
