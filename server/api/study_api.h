// What each StudyService request that changes something does, in value types (shared by gRPC and,
// later, HTTP); queries() has those that read. Thread-safe. Codes are documented per method;
// Unavailable while draining, DataLoss when the database is damaged.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/protocol/study_exchange.h"
#include "common/study/attributes.h"
#include "common/study/imported_trial.h"
#include "common/study/study.h"
#include "common/study/study_status.h"
#include "server/api/study_queries.h"
#include "server/orders/edit_study.h"

namespace hpo::server {

class TrialScheduler;

class StudyApi {
 public:
  // `scheduler` outlives it.
  explicit StudyApi(TrialScheduler& scheduler) : scheduler_(scheduler), queries_(scheduler) {}

  const StudyQueries& queries() const { return queries_; }

  // Stores `spec`, or takes budget and added choices into the stored one of that name.
  //   InvalidArgument     the spec is not valid
  //   FailedPrecondition  anything else changed; names the field
  //   Cancelled           `cancelled` returned true while earlier studies were looked through
  absl::StatusOr<CreateResult> CreateStudy(
      const StudySpec& spec, bool validate_only, const std::string& request_id,
      const std::function<bool()>& cancelled = [] { return false; });

  //   NotFound, InvalidArgument (a budget < 0, a choice of another type, an unknown parameter)
  absl::StatusOr<StudyStatus> UpdateStudy(const std::string& name, const StudyUpdate& update,
                                          const std::string& request_id);

  // Other ranges and choices, and by a file also narrowings and defaults. Trials outside stay;
  // those that wait and have never run are cancelled, whatever runs goes on.
  //   NotFound            no such study
  //   InvalidArgument     an unknown parameter, or a space that is none (ValidateSpace)
  //   FailedPrecondition  a parameter of another kind, or the file differs in anything else
  absl::StatusOr<EditResult> EditStudy(const std::string& name, const SpecChange& change,
                                       bool validate_only = false);

  // All that is stored of a study, as study_archive.h writes it.
  //   NotFound   no such study
  //   Cancelled  `sink` returned false
  absl::StatusOr<ArchiveEnd> ArchiveStudy(const std::string& name,
                                          const std::function<bool(absl::string_view)>& sink) const;
  // The study of an archive; its name, or `name` where that is not empty.
  //   InvalidArgument  no archive, one that is not whole or of a newer version, rows that cannot be
  //                    read
  //   AlreadyExists    there is a study of this name
  //   what `admit` says of the study, which is not restored then
  absl::StatusOr<StudyStatus> RestoreStudy(
      const std::string& name, const std::string& archive,
      const std::function<absl::Status(const StudySpec&)>& admit = [](const StudySpec&) {
        return absl::OkStatus();
      });
  // Forgets a study; how many trials it had. `archive_sha256`: only where its archive is still
  // that; empty: whatever it is.
  //   NotFound            no such study
  //   FailedPrecondition  a worker runs one of its trials, another study starts from it, or it has
  //                       changed since it was archived
  absl::StatusOr<int64_t> DeleteStudy(const std::string& name, const std::string& archive_sha256);

  //   InvalidArgument  an unknown parameter, or a value outside its domain
  absl::StatusOr<Trial> EnqueueTrial(const std::string& study, const EnqueueRequest& request,
                                     const std::string& request_id);

  // Notes something of a study, or of the trial that is named; what there is then. Neither a watch
  // nor the sampler hears of it.
  //   NotFound         no such study or trial
  //   InvalidArgument  Changed (common/study/attributes.h)
  absl::StatusOr<Attributes> ChangeAttributes(const std::string& study,
                                              std::optional<TrialNumber> number,
                                              const AttributeChange& change);

  // Queues the configurations of trials that failed or that memory ended, as new trials that carry
  // kRetryOfKey. What waits, runs or has completed since is skipped; with all_failed also what was
  // refused by its estimate, and what the study's space no longer has.
  //   NotFound            no such study or trial
  //   InvalidArgument     neither numbers nor all_failed, or both; a configuration that the space
  //                       no longer has
  //   FailedPrecondition  a named trial ended otherwise or is open; a study that hands out nothing
  absl::StatusOr<RetryResult> RetryTrials(const std::string& study, const RetryRequest& request,
                                          const std::string& request_id);

  // Adds trials that another program finished, all or none, in one transaction. Those whose origin
  // is there already are left as they are.
  //   InvalidArgument  an unknown parameter, a value outside its domain, a completed trial without
  //                    one of the objectives; names the trial by its origin
  //   AlreadyExists    an origin that is there with other parameters or another outcome
  absl::StatusOr<ImportResult> ImportTrials(const TrialImport& import);

  // Orders the worker of a running trial to save and to give it back (Directive::kPreempted). The
  // order is stored: it outlives the server, and ends with the attempt.
  //   NotFound            no such study or trial
  //   FailedPrecondition  no worker runs it
  absl::StatusOr<Trial> PreemptTrial(const std::string& study, TrialNumber number);

  // Has a running trial end as CANCELLED: its worker hears of it at its next heartbeat or report.
  // The order is stored. Where the attempt reaches an end of its own first, that counts; where it
  // would run again, it does not.
  //   NotFound            no such study or trial
  //   FailedPrecondition  no worker runs it
  absl::StatusOr<Trial> StopTrial(const std::string& study, TrialNumber number,
                                  const std::string& reason);
  // Ends a queued trial as CANCELLED.
  //   NotFound            no such study or trial
  //   FailedPrecondition  it is not queued
  absl::StatusOr<Trial> CancelTrial(const std::string& study, TrialNumber number,
                                    const std::string& reason);
  // kRun takes up a study that was paused or stopped; of one that failed, failures so far count no
  // more. `stop_running_trials`: as StopTrial does.
  //   NotFound         no such study
  //   InvalidArgument  stop_running_trials without kStop
  absl::StatusOr<StudyStatus> OrderStudy(const std::string& name, StudyOrder order,
                                         bool stop_running_trials);

 private:
  TrialScheduler& scheduler_;
  StudyQueries queries_;
};

}  // namespace hpo::server
