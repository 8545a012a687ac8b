// Measurements and memory records on their way to the server: measurements are sent as they come,
// records with them or within kRecordDelay; both are kept and sent again while it is away or cannot
// store them, in parts that fit into a message. One thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/protocol/worker_exchange.h"
#include "worker/agent/process/backoff.h"
#include "worker/agent/session/coordinator_client.h"
#include "worker/agent/session/worker_session.h"

namespace hpo::agent {

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

  // After kMeasurementLimit of an attempt the rest is left out.
  void AddMeasurement(const Measurement& measurement);
  void AddPlan(const MemoryPlan& plan);
  void AddOom();
  // Numbers the record. After kMostRecords of an attempt the rest is left out.
  void AddMemoryRecord(MemoryRecord record);
  // What the server would not take, or beyond kAttributeLimit of an attempt, is left out.
  void AddAttributes(const Attributes& attributes);

  // Of measurements that wait to be sent. Beyond it every second of them is left out, again and
  // again, so that the rest still covers the whole time.
  static constexpr size_t kMostWaitingBytes = size_t{64} << 20;
  static constexpr int64_t kMostRecords = kMemoryRecordLimit.most;
  static constexpr absl::Duration kRecordDelay = absl::Seconds(1);

  // Monotonic time of the next report; nullopt: there is nothing to report.
  std::optional<absl::Duration> due() const { return due_; }

  // Sends what is due; does nothing when nothing is.
  ReportAnswer SendIfDue();

  // What no report has carried: it goes with the result.
  void MoveUnsentTo(FinishRequest& result) {
    result.measurements = std::move(measurements_);
    result.memory_records = std::move(memory_records_);
    result.attributes = std::move(attributes_);
  }
  // Tries once to send what no report has carried, of an attempt that has no result; in parts.
  void SendLast();

  int64_t num_ooms() const { return num_ooms_; }
  int64_t num_replans() const { return num_replans_; }

 private:
  ReportAnswer TakeFailure(const absl::Status& status, const AttemptReport& report,
                           const std::string& session);
  void SendSoon();
  // What `report` carried need not be sent again.
  void Sent(const AttemptReport& report);
  void LeaveOutSome();
  void NoteRefusal(const absl::Status& status);

  CoordinatorClient& client_;
  WorkerSession& session_;
  const LeaseRef lease_;
  Backoff retry_;
  const SystemClock clock_;
  std::vector<Measurement> measurements_;
  std::vector<MemoryRecord> memory_records_;
  Attributes attributes_;
  std::set<std::string> known_attributes_;
  int64_t num_measurements_ = 0;
  int64_t num_records_ = 0;
  std::optional<MemoryPlan> new_plan_;
  int64_t num_ooms_ = 0;
  int64_t num_replans_ = 0;
  std::optional<absl::Duration> due_;
  size_t waiting_bytes_ = 0;  // of measurements_, as MessageBytes
  // That of the last report, where the server answered and did not take it.
  absl::StatusCode refused_ = absl::StatusCode::kOk;
};

}  // namespace hpo::agent
