#include "server/api/study_api.h"

#include <utility>

#include "common/base/status.h"
#include "common/files/sha256.h"
#include "server/orders/import_trials.h"
#include "server/scheduler/trial_scheduler.h"
#include "server/studies/study_description.h"

namespace hpo::server {
namespace {

constexpr size_t kArchivePiece = size_t{1} << 20;  // of an archive

absl::Status DrainingError() {
  return absl::UnavailableError("hpo-server is shutting down; try again soon");
}

}  // namespace

absl::StatusOr<CreateResult> StudyApi::CreateStudy(const StudySpec& spec, bool validate_only,
                                                   const std::string& request_id,
                                                   const std::function<bool()>& cancelled) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_ASSIGN_OR_RETURN(const bool created, scheduler_.commands().CreateStudy(
                                               spec, validate_only, request_id, cancelled));
  if (validate_only && created) {
    return CreateResult{.study = StudyStatus{.spec = spec}, .created = false};
  }
  HPO_ASSIGN_OR_RETURN(StudyStatus study, DescribeStudy(scheduler_.state(), spec.name));
  return CreateResult{.study = std::move(study), .created = created};
}

absl::StatusOr<StudyStatus> StudyApi::UpdateStudy(const std::string& name,
                                                  const StudyUpdate& update,
                                                  const std::string& request_id) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_RETURN_IF_ERROR(scheduler_.commands().UpdateStudy(name, update, request_id));
  return DescribeStudy(scheduler_.state(), name);
}

absl::StatusOr<EditResult> StudyApi::EditStudy(const std::string& name, const SpecChange& change,
                                               bool validate_only) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_ASSIGN_OR_RETURN(EditResult result,
                       hpo::server::EditStudy(scheduler_.state(), name, change, validate_only));
  HPO_ASSIGN_OR_RETURN(result.study, DescribeStudy(scheduler_.state(), name));
  return result;
}

absl::StatusOr<ArchiveEnd> StudyApi::ArchiveStudy(
    const std::string& name, const std::function<bool(absl::string_view)>& sink) const {
  ArchiveEnd end;
  Sha256 digest;
  std::string piece;
  const auto send = [&]() -> absl::Status {
    digest.Update(piece);
    end.size += Bytes{static_cast<int64_t>(piece.size())};
    if (!sink(piece)) return absl::CancelledError("the caller of the archive has gone");
    piece.clear();
    return absl::OkStatus();
  };
  const auto take = [&](absl::string_view line) -> absl::Status {
    piece.append(line.data(), line.size());
    return piece.size() < kArchivePiece ? absl::OkStatus() : send();
  };
  HPO_ASSIGN_OR_RETURN(end.num_trials, scheduler_.archiver().ArchiveStudy(name, take));
  HPO_RETURN_IF_ERROR(send());
  end.sha256 = digest.HexDigest();
  return end;
}

absl::StatusOr<StudyStatus> StudyApi::RestoreStudy(
    const std::string& name, const std::string& archive,
    const std::function<absl::Status(const StudySpec&)>& admit) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_ASSIGN_OR_RETURN(const std::string restored,
                       scheduler_.archiver().RestoreStudy(name, archive, admit));
  return DescribeStudy(scheduler_.state(), restored);
}

absl::StatusOr<int64_t> StudyApi::DeleteStudy(const std::string& name,
                                              const std::string& archive_sha256) {
  if (scheduler_.state().work.draining()) return DrainingError();
  return scheduler_.archiver().DeleteStudy(name, archive_sha256);
}

absl::StatusOr<Trial> StudyApi::EnqueueTrial(const std::string& study,
                                             const EnqueueRequest& request,
                                             const std::string& request_id) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_ASSIGN_OR_RETURN(const TrialNumber number,
                       scheduler_.enqueuer().EnqueueTrial(study, request, request_id));
  HPO_ASSIGN_OR_RETURN(TrialView detail, queries_.GetTrial(study, number));
  return std::move(detail.trial);
}

absl::StatusOr<Attributes> StudyApi::ChangeAttributes(const std::string& study,
                                                      std::optional<TrialNumber> number,
                                                      const AttributeChange& change) {
  if (scheduler_.state().work.draining()) return DrainingError();
  return scheduler_.orders().ChangeAttributes(study, number, change);
}

absl::StatusOr<RetryResult> StudyApi::RetryTrials(const std::string& study,
                                                  const RetryRequest& request,
                                                  const std::string& request_id) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_ASSIGN_OR_RETURN(const QueuedAgain again,
                       scheduler_.enqueuer().RetryTrials(study, request, request_id));
  RetryResult result{.trials = {}, .skipped = again.skipped};
  for (const TrialNumber number : again.queued) {
    HPO_ASSIGN_OR_RETURN(TrialView detail, queries_.GetTrial(study, number));
    result.trials.push_back(Listed(std::move(detail.trial)));
  }
  return result;
}

absl::StatusOr<ImportResult> StudyApi::ImportTrials(const TrialImport& import) {
  if (scheduler_.state().work.draining()) return DrainingError();
  return hpo::server::ImportTrials(scheduler_.state(), import);
}

absl::StatusOr<Trial> StudyApi::PreemptTrial(const std::string& study, TrialNumber number) {
  HPO_RETURN_IF_ERROR(scheduler_.orders().PreemptTrial(study, number));
  HPO_ASSIGN_OR_RETURN(TrialView detail, queries_.GetTrial(study, number));
  return std::move(detail.trial);
}

absl::StatusOr<Trial> StudyApi::StopTrial(const std::string& study, TrialNumber number,
                                          const std::string& reason) {
  HPO_RETURN_IF_ERROR(
      scheduler_.orders().StopTrial(study, number, reason.empty() ? "stopped by hand" : reason));
  HPO_ASSIGN_OR_RETURN(TrialView detail, queries_.GetTrial(study, number));
  return std::move(detail.trial);
}

absl::StatusOr<Trial> StudyApi::CancelTrial(const std::string& study, TrialNumber number,
                                            const std::string& reason) {
  HPO_RETURN_IF_ERROR(scheduler_.orders().CancelTrial(
      study, number, reason.empty() ? "cancelled by hand" : reason));
  HPO_ASSIGN_OR_RETURN(TrialView detail, queries_.GetTrial(study, number));
  return std::move(detail.trial);
}

absl::StatusOr<StudyStatus> StudyApi::OrderStudy(const std::string& name, StudyOrder order,
                                                 bool stop_running_trials) {
  HPO_RETURN_IF_ERROR(scheduler_.orders().OrderStudy(name, order, stop_running_trials));
  return DescribeStudy(scheduler_.state(), name);
}

}  // namespace hpo::server
