// Tested by tests/server/rpc/rpc_server_test.cc.
#include "server/rpc/study_service.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/study_file/study_file.h"
#include "proto/convert/grpc_status.h"
#include "proto/convert/params_proto.h"
#include "proto/convert/study_exchange_proto.h"
#include "server/rpc/rpc_macros.h"

namespace hpo::server {
namespace {

//   InvalidArgument  not a study file, a file as well as ranges, or neither
absl::StatusOr<SpecChange> ChangeOf(StudyEdit edit) {
  if (edit.yaml.empty() == edit.ranges.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("ranges: expected them or yaml, got ",
                                                   edit.yaml.empty() ? "neither" : "both"));
  }
  if (edit.yaml.empty()) return std::move(edit.ranges);
  return ParseStudyFile(edit.yaml, edit.origin.empty() ? "study" : edit.origin, StudyOverrides());
}

// Workers that allow it run a study's command: who may name one may run any program there.
absl::Status CheckCommand(const AccessControl::Permit& permit, const StudySpec& study) {
  const Caller& caller = permit.caller();
  if (study.trainer.command.empty() || caller.MayNameCommands()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("study ", study.name,
                   " names a command (trainer.command), which workers would run: that "
                   "needs a token with the role admin, and '",
                   caller.name, "' has the role ", RoleName(caller.role),
                   "; without it, start workers with --trainer \"COMMAND\""));
}

}  // namespace

// The overloads of this library would hide those of proto/convert.
using hpo::FromProto;
using hpo::ToProto;

grpc::Status StudyServiceImpl::CreateStudy(grpc::ServerContext* context,
                                           const v1::CreateStudyRequest* request,
                                           v1::CreateStudyResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  const std::string origin = request->origin().empty() ? "study" : request->origin();
  HPO_RPC_ASSIGN(const StudySpec spec, ParseStudyFile(request->yaml(), origin, StudyOverrides()));
  HPO_RPC_RETURN_IF_ERROR(CheckCommand(*hpo_permit, spec));
  HPO_RPC_ASSIGN(const CreateResult result,
                 api_.CreateStudy(spec, request->validate_only(), request->request_id(),
                                  [context] { return context->IsCancelled(); }));
  *response = ToMessage<v1::CreateStudyResponse>(result);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::UpdateStudy(grpc::ServerContext* context,
                                           const v1::UpdateStudyRequest* request,
                                           v1::UpdateStudyResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const StudyUpdate update, FromProto(*request));
  HPO_RPC_ASSIGN(const StudyStatus study,
                 api_.UpdateStudy(request->name(), update, request->request_id()));
  *response->mutable_study() = ToProto(study);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::EditStudy(grpc::ServerContext* context,
                                         const v1::EditStudyRequest* request,
                                         v1::EditStudyResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(StudyEdit edit, FromMessage<StudyEdit>(*request));
  HPO_RPC_ASSIGN(const SpecChange change, ChangeOf(std::move(edit)));
  if (const auto* const file = std::get_if<StudySpec>(&change)) {
    HPO_RPC_RETURN_IF_ERROR(CheckCommand(*hpo_permit, *file));
  }
  HPO_RPC_ASSIGN(const EditResult result,
                 api_.EditStudy(request->name(), change, request->validate_only()));
  *response = ToMessage<v1::EditStudyResponse>(result);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::ArchiveStudy(grpc::ServerContext* context,
                                            const v1::ArchiveStudyRequest* request,
                                            grpc::ServerWriter<v1::ArchiveStudyResponse>* writer) {
  HPO_RPC_ADMIT(context, *request);
  v1::ArchiveStudyResponse message;
  HPO_RPC_ASSIGN(const ArchiveEnd end,
                 api_.ArchiveStudy(request->name(), [&](absl::string_view bytes) {
                   message.set_data(bytes.data(), bytes.size());
                   return writer->Write(message);
                 }));
  *message.mutable_end() = ToMessage<v1::ArchiveEnd>(end);
  writer->Write(message);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::RestoreStudy(grpc::ServerContext* context,
                                            grpc::ServerReader<v1::RestoreStudyRequest>* reader,
                                            v1::RestoreStudyResponse* response) {
  HPO_RPC_ALLOW(context);
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
  HPO_RPC_ASSIGN(const StudyStatus study,
                 api_.RestoreStudy(name, archive, [&hpo_permit](const StudySpec& spec) {
                   return CheckCommand(*hpo_permit, spec);
                 }));
  *response->mutable_study() = ToProto(study);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::DeleteStudy(grpc::ServerContext* context,
                                           const v1::DeleteStudyRequest* request,
                                           v1::DeleteStudyResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const int64_t trials,
                 api_.DeleteStudy(request->name(), request->archive_sha256()));
  response->set_trials(trials);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::EnqueueTrial(grpc::ServerContext* context,
                                            const v1::EnqueueTrialRequest* request,
                                            v1::EnqueueTrialResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const EnqueueRequest enqueue, FromMessage<EnqueueRequest>(*request));
  HPO_RPC_ASSIGN(const Trial trial,
                 api_.EnqueueTrial(request->study(), enqueue, request->request_id()));
  *response->mutable_trial() = ToProto(trial);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::PreemptTrial(grpc::ServerContext* context,
                                            const v1::PreemptTrialRequest* request,
                                            v1::PreemptTrialResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const Trial trial,
                 api_.PreemptTrial(request->study(), TrialNumber{request->number()}));
  *response->mutable_trial() = ToProto(trial);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::StopTrial(grpc::ServerContext* context,
                                         const v1::StopTrialRequest* request,
                                         v1::StopTrialResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const Trial trial, api_.StopTrial(request->study(), TrialNumber{request->number()},
                                                   request->reason()));
  *response->mutable_trial() = ToProto(trial);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::CancelTrial(grpc::ServerContext* context,
                                           const v1::CancelTrialRequest* request,
                                           v1::CancelTrialResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(
      const Trial trial,
      api_.CancelTrial(request->study(), TrialNumber{request->number()}, request->reason()));
  *response->mutable_trial() = ToProto(trial);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::OrderStudy(grpc::ServerContext* context,
                                          const v1::OrderStudyRequest* request,
                                          v1::OrderStudyResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const StudyOrder order, FromProto(request->order()));
  HPO_RPC_ASSIGN(const StudyStatus study,
                 api_.OrderStudy(request->name(), order, request->stop_running_trials()));
  *response->mutable_study() = ToProto(study);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::Annotate(grpc::ServerContext* context,
                                        const v1::AnnotateRequest* request,
                                        v1::AnnotateResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  std::optional<TrialNumber> number;
  if (request->has_number()) number = TrialNumber{request->number()};
  HPO_RPC_ASSIGN(const AttributeChange change, FromMessage<AttributeChange>(*request));
  HPO_RPC_ASSIGN(const Attributes attributes,
                 api_.ChangeAttributes(request->study(), number, change));
  *response->mutable_attributes() = ToProto(attributes);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::RetryTrials(grpc::ServerContext* context,
                                           const v1::RetryTrialsRequest* request,
                                           v1::RetryTrialsResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const RetryRequest retry, FromMessage<RetryRequest>(*request));
  HPO_RPC_ASSIGN(const RetryResult result,
                 api_.RetryTrials(request->study(), retry, request->request_id()));
  *response = ToMessage<v1::RetryTrialsResponse>(result);
  return grpc::Status::OK;
}

grpc::Status StudyServiceImpl::ImportTrials(grpc::ServerContext* context,
                                            grpc::ServerReader<v1::ImportTrialsRequest>* reader,
                                            v1::ImportTrialsResponse* response) {
  HPO_RPC_ALLOW(context);
  TrialImport imported;
  imported.cancelled = [context] { return context->IsCancelled(); };
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
  *response = ToMessage<v1::ImportTrialsResponse>(result);
  return grpc::Status::OK;
}

}  // namespace hpo::server
