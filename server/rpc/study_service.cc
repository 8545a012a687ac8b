// Tested by tests/server/rpc/rpc_server_test.cc.
#include "server/rpc/study_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/study_file/study_file.h"
#include "proto/convert/grpc_status.h"
#include "proto/convert/params_proto.h"
#include "proto/convert/study_proto.h"
#include "proto/convert/trial_proto.h"
#include "server/api/page_token.h"
#include "server/rpc/convert_study.h"
#include "server/rpc/rpc_macros.h"

namespace hpo {
namespace {

constexpr int kDefaultPageSize = 100;
constexpr int64_t kFromTheFirst = -1;  // see StudyApi::WatchStudy
constexpr auto kPageBytes = static_cast<size_t>(kPageBytesLimit.most);

bool Left(const grpc::ServerContext* context) { return context->IsCancelled(); }

absl::Status CallerLeft() { return absl::CancelledError("the caller has left"); }

}  // namespace

grpc::Status StudyServiceImpl::CreateStudy(grpc::ServerContext* context,
                                           const v1::CreateStudyRequest* request,
                                           v1::CreateStudyResponse* response) {
  HPO_RPC_CHECK(*request);
  const std::string origin = request->origin().empty() ? "study" : request->origin();
  HPO_RPC_ASSIGN(const StudySpec spec, ParseStudyFile(request->yaml(), origin, StudyOverrides()));
  HPO_RPC_ASSIGN(const StudyApi::Created created,
                 api_.CreateStudy(spec, request->validate_only(), request->request_id(),
                                  [context] { return Left(context); }));
  *response->mutable_study() = ToProto(created.status);
  response->set_created(created.created);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::GetStudy(grpc::ServerContext*, const v1::GetStudyRequest* request,
                                        v1::GetStudyResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(const StudyStatus study, api_.GetStudy(request->name()));
  *response->mutable_study() = ToProto(study);
  return grpc::Status::OK;
}

// Studies are few: pages are cut from the whole list, and a token is the last name of its page.
grpc::Status StudyServiceImpl::ListStudies(grpc::ServerContext*,
                                           const v1::ListStudiesRequest* request,
                                           v1::ListStudiesResponse* response) {
  HPO_RPC_CHECK(*request);
  const int page_size = request->page_size() == 0 ? kDefaultPageSize : request->page_size();
  HPO_RPC_ASSIGN(std::vector<StudyStatus> studies, api_.ListStudies());
  std::sort(studies.begin(), studies.end(),
            [](const StudyStatus& a, const StudyStatus& b) { return a.spec.name < b.spec.name; });
  for (const StudyStatus& study : studies) {
    if (!request->page_token().empty() && study.spec.name <= request->page_token()) continue;
    if (response->studies_size() == page_size) {
      response->set_next_page_token(response->studies(page_size - 1).name());
      break;
    }
    *response->add_studies() = ToProto(study);
  }
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::UpdateStudy(grpc::ServerContext*,
                                           const v1::UpdateStudyRequest* request,
                                           v1::UpdateStudyResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(const StudyUpdate update, FromProto(*request));
  HPO_RPC_ASSIGN(const StudyStatus study,
                 api_.UpdateStudy(request->name(), update, request->request_id()));
  *response->mutable_study() = ToProto(study);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::EditStudy(grpc::ServerContext*, const v1::EditStudyRequest* request,
                                         v1::EditStudyResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(const StudyEdit edit, FromProto(*request));
  HPO_RPC_ASSIGN(const StudyApi::Edited edited, api_.EditStudy(request->name(), edit));
  *response = ToProto(edited);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::ArchiveStudy(grpc::ServerContext*,
                                            const v1::ArchiveStudyRequest* request,
                                            grpc::ServerWriter<v1::ArchiveStudyResponse>* writer) {
  HPO_RPC_CHECK(*request);
  v1::ArchiveStudyResponse message;
  HPO_RPC_ASSIGN(const StudyApi::ArchiveEnd end,
                 api_.ArchiveStudy(request->name(), [&](absl::string_view bytes) {
                   message.set_data(bytes.data(), bytes.size());
                   return writer->Write(message);
                 }));
  message.mutable_end()->set_size_bytes(end.size);
  message.mutable_end()->set_sha256(end.sha256);
  message.mutable_end()->set_trials(end.num_trials);
  writer->Write(message);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::RestoreStudy(grpc::ServerContext*,
                                            grpc::ServerReader<v1::RestoreStudyRequest>* reader,
                                            v1::RestoreStudyResponse* response) {
  std::string name;
  std::string archive;
  v1::RestoreStudyRequest request;
  for (bool first = true; reader->Read(&request); first = false) {
    HPO_RPC_CHECK(request);
    if (first) name = request.name();
    if (archive.size() + request.data().size() > static_cast<size_t>(kArchiveLimit.most)) {
      return ToGrpc(absl::InvalidArgumentError(
          absl::StrCat("data: expected at most ", kArchiveLimit.most, " bytes, got more")));
    }
    archive += request.data();
  }
  HPO_RPC_ASSIGN(const StudyStatus study, api_.RestoreStudy(name, archive));
  *response->mutable_study() = ToProto(study);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::DeleteStudy(grpc::ServerContext*,
                                           const v1::DeleteStudyRequest* request,
                                           v1::DeleteStudyResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(const int64_t trials,
                 api_.DeleteStudy(request->name(), request->archive_sha256()));
  response->set_trials(trials);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::EnqueueTrial(grpc::ServerContext*,
                                            const v1::EnqueueTrialRequest* request,
                                            v1::EnqueueTrialResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(const EnqueueRequest enqueue, FromProto(*request));
  HPO_RPC_ASSIGN(const Trial trial,
                 api_.EnqueueTrial(request->study(), enqueue, request->request_id()));
  *response->mutable_trial() = ToProto(trial);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::PreemptTrial(grpc::ServerContext*,
                                            const v1::PreemptTrialRequest* request,
                                            v1::PreemptTrialResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(const Trial trial,
                 api_.PreemptTrial(request->study(), TrialNumber{request->number()}));
  *response->mutable_trial() = ToProto(trial);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::StopTrial(grpc::ServerContext*, const v1::StopTrialRequest* request,
                                         v1::StopTrialResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(const Trial trial, api_.StopTrial(request->study(), TrialNumber{request->number()},
                                                   request->reason()));
  *response->mutable_trial() = ToProto(trial);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::CancelTrial(grpc::ServerContext*,
                                           const v1::CancelTrialRequest* request,
                                           v1::CancelTrialResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(
      const Trial trial,
      api_.CancelTrial(request->study(), TrialNumber{request->number()}, request->reason()));
  *response->mutable_trial() = ToProto(trial);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::OrderStudy(grpc::ServerContext*,
                                          const v1::OrderStudyRequest* request,
                                          v1::OrderStudyResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(const StudyOrder order, FromProto(request->order()));
  HPO_RPC_ASSIGN(const StudyStatus study,
                 api_.OrderStudy(request->name(), order, request->stop_running_trials()));
  *response->mutable_study() = ToProto(study);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::Annotate(grpc::ServerContext*, const v1::AnnotateRequest* request,
                                        v1::AnnotateResponse* response) {
  HPO_RPC_CHECK(*request);
  std::optional<TrialNumber> number;
  if (request->has_number()) number = TrialNumber{request->number()};
  HPO_RPC_ASSIGN(const Attributes attributes,
                 api_.ChangeAttributes(request->study(), number, FromProto(*request)));
  *response->mutable_attributes() = ToProto(attributes);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::RetryTrials(grpc::ServerContext*,
                                           const v1::RetryTrialsRequest* request,
                                           v1::RetryTrialsResponse* response) {
  HPO_RPC_CHECK(*request);
  RetryRequest retry{.numbers = {}, .all_failed = request->all_failed()};
  for (const int64_t number : request->numbers()) retry.numbers.push_back(TrialNumber{number});
  HPO_RPC_ASSIGN(const StudyApi::Retried retried,
                 api_.RetryTrials(request->study(), retry, request->request_id()));
  for (const Trial& trial : retried.trials) *response->add_trials() = ToListed(trial);
  for (const auto& [number, why] : retried.skipped) {
    v1::RetryTrialsResponse::Skipped& skipped = *response->add_skipped();
    skipped.set_number(number.value);
    skipped.set_why(why);
  }
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::ImportTrials(grpc::ServerContext* context,
                                            grpc::ServerReader<v1::ImportTrialsRequest>* reader,
                                            v1::ImportTrialsResponse* response) {
  TrialImport imported;
  imported.cancelled = [context] { return Left(context); };
  v1::ImportTrialsRequest request;
  for (bool first = true; reader->Read(&request); first = false) {
    HPO_RPC_CHECK(request);
    if (first) {
      imported.study = request.study();
      imported.count_against_budget = request.count_against_budget();
    }
    const size_t size = imported.trials.size() + static_cast<size_t>(request.trials_size());
    if (size > static_cast<size_t>(kImportLimit.most)) {
      return ToGrpc(absl::InvalidArgumentError(
          absl::StrCat("trials: expected at most ", kImportLimit.most, " in a call, got more")));
    }
    for (const v1::ImportedTrial& trial : request.trials()) {
      HPO_RPC_ASSIGN(ImportedTrial converted, FromProto(trial));
      imported.trials.push_back(std::move(converted));
    }
  }
  HPO_RPC_ASSIGN(const ImportResult result, api_.ImportTrials(imported));
  response->set_study(result.study);
  response->set_added(result.num_added);
  response->set_known(result.num_known);
  return grpc::Status::OK;
}

absl::Status StudyServiceImpl::FillPage(const grpc::ServerContext* context,
                                        const v1::ListTrialsRequest& request,
                                        v1::ListTrialsResponse& response) {
  HPO_ASSIGN_OR_RETURN(const TrialFilter filter, FromProto(request));
  HPO_ASSIGN_OR_RETURN(TrialPage page, api_.ListTrials(request.study(), filter, request.page_size(),
                                                       request.page_token()));
  response.set_next_page_token(std::move(page.next_token));
  response.set_total(page.total);
  size_t used = 0;
  for (const Trial& trial : page.trials) {
    if (Left(context)) return CallerLeft();
    v1::Trial listed;
    if (request.view() == v1::TRIAL_VIEW_FULL) {
      HPO_ASSIGN_OR_RETURN(const TrialView detail, api_.GetTrial(trial.id.study, trial.id.number));
      listed = ToProto(detail);
    } else {
      listed = ToListed(trial);
    }
    used += listed.ByteSizeLong();
    if (used > kPageBytes && response.trials_size() > 0) {
      const TrialNumber last{response.trials(response.trials_size() - 1).number()};
      response.set_next_page_token(MakePageToken(trial.id.study, filter, last));
      break;
    }
    *response.add_trials() = std::move(listed);
  }
  return absl::OkStatus();
}

grpc::Status StudyServiceImpl::ListTrials(grpc::ServerContext* context,
                                          const v1::ListTrialsRequest* request,
                                          v1::ListTrialsResponse* response) {
  HPO_RPC_CHECK(*request);
  return ToGrpc(FillPage(context, *request, *response));
}

grpc::Status StudyServiceImpl::GetTrial(grpc::ServerContext*, const v1::GetTrialRequest* request,
                                        v1::GetTrialResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(const TrialView detail,
                 api_.GetTrial(request->study(), TrialNumber{request->number()}));
  *response->mutable_trial() = ToProto(detail);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::ListBestTrials(grpc::ServerContext* context,
                                              const v1::ListBestTrialsRequest* request,
                                              v1::ListBestTrialsResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(
      const std::vector<Trial> trials,
      api_.ListBestTrials(request->study(), request->count(), [context] { return Left(context); }));
  size_t used = 0;
  for (const Trial& trial : trials) {
    v1::Trial listed = ToListed(trial);
    used += listed.ByteSizeLong();
    if (used > kPageBytes && response->trials_size() > 0) break;
    *response->add_trials() = std::move(listed);
  }
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::EstimateMemory(grpc::ServerContext*,
                                              const v1::EstimateMemoryRequest* request,
                                              v1::EstimateMemoryResponse* response) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(const ParamMap params, FromProto(request->params()));
  HPO_RPC_ASSIGN(const MemoryAnswer answer,
                 api_.EstimateMemory(request->study(), params, request->worker(),
                                     Bytes{request->limit_bytes()}));
  *response = ToProto(answer);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::WatchStudy(grpc::ServerContext* context,
                                          const v1::WatchStudyRequest* request,
                                          grpc::ServerWriter<v1::WatchStudyResponse>* writer) {
  HPO_RPC_CHECK(*request);
  HPO_RPC_ASSIGN(const OpenWatches::Watch watch, watches_.Open(context->peer()));
  HPO_RPC_ASSIGN(const StudyStatus study, api_.GetStudy(request->study()));
  v1::WatchStudyResponse snapshot;
  *snapshot.mutable_snapshot() = ToProto(study);
  if (!writer->Write(snapshot)) return grpc::Status::CANCELLED;
  // From the snapshot on, so that nothing between it and the first change is lost.
  int64_t sequence = request->after_sequence() != 0 ? request->after_sequence() : study.sequence;
  if (sequence == 0) sequence = kFromTheFirst;
  const auto bookmark = [&] {
    v1::WatchStudyResponse response;
    response.set_bookmark(std::max<int64_t>(0, sequence));
    return writer->Write(response);
  };
  const auto emit = [&](const std::optional<TrialEvent>& event) {
    if (!event) return bookmark();
    sequence = event->sequence;
    if (event->trial) return writer->Write(ToProto(*event));
    // The study's own change: what it is now, and that it is known up to here.
    const absl::StatusOr<StudyStatus> now = api_.GetStudy(study.spec.name);
    if (!now.ok()) return false;
    *snapshot.mutable_snapshot() = ToProto(*now);
    return writer->Write(snapshot) && bookmark();
  };
  return ToGrpc(api_.WatchStudy(study.spec.name, sequence, emit,
                                [context] { return context->IsCancelled(); }));
}

}  // namespace hpo
