// Tested by tests/cli/program/program_test.cc.
#include "cli/client/study_client.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "cli/client/advice.h"
#include "cli/client/server_connection.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "proto/convert/params_proto.h"
#include "proto/convert/study_exchange_proto.h"

namespace hpo::cli {
namespace {

using Studies = ServerConnection::Studies;

constexpr int64_t kFromTheFirst = -1;                   // on the wire, 0 is "from now"
constexpr char kNoWorker[] = "no worker is connected";  // in what a study waits for

// As the command has to see it, whose server it may be.
absl::StatusOr<StudyStatus> ReadStudy(const v1::Study& study, const ServerConnection& connection) {
  HPO_ASSIGN_OR_RETURN(StudyStatus status, FromProto(study));
  if (connection.source() == ServerSource::kServer) {
    status.waiting_for = WithServer(status.waiting_for, connection.advised_address());
    return status;
  }
  status.waiting_for = WithoutGoingOn(status.waiting_for);
  if (connection.source() == ServerSource::kOwn) {
    // Its worker is started, or ended, by the command itself.
    if (absl::StrContains(status.waiting_for, kNoWorker)) status.waiting_for.clear();
    return status;
  }
  status.workers.clear();
  status.blocked = false;
  // Why it ended, or who holds it up, is stored.
  if (!status.finished && status.order == StudyOrder::kRun) status.waiting_for.clear();
  return status;
}

}  // namespace

absl::StatusOr<StudyStatus> StudyClient::GetStudy(const std::string& name) {
  v1::GetStudyRequest request;
  request.set_name(name);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::GetStudy, request));
  return ReadStudy(response.study(), connection_);
}

absl::StatusOr<std::vector<StudyStatus>> StudyClient::ListStudies() {
  std::vector<StudyStatus> studies;
  v1::ListStudiesRequest request;
  request.set_page_size(kPageLimit.most);
  do {
    HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::ListStudies, request));
    for (const v1::Study& study : response.studies()) {
      HPO_ASSIGN_OR_RETURN(studies.emplace_back(), ReadStudy(study, connection_));
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return studies;
}

absl::StatusOr<CreateResult> StudyClient::CreateStudy(const std::string& yaml,
                                                      const std::string& origin,
                                                      bool validate_only) {
  v1::CreateStudyRequest request;
  request.set_yaml(yaml);
  request.set_origin(origin);
  request.set_validate_only(validate_only);
  request.set_request_id(RandomId());
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::CreateStudy, request));
  return FromMessage<CreateResult>(response);
}

absl::StatusOr<StudyStatus> StudyClient::UpdateStudy(const std::string& name,
                                                     const StudyUpdate& update) {
  v1::UpdateStudyRequest request = ToProto(update);
  request.set_name(name);
  request.set_request_id(RandomId());
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::UpdateStudy, request));
  return FromProto(response.study());
}

absl::StatusOr<EditResult> StudyClient::EditStudy(const std::string& name, const StudyEdit& edit) {
  auto request = ToMessage<v1::EditStudyRequest>(edit);
  request.set_name(name);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::EditStudy, request));
  return FromMessage<EditResult>(response);
}

absl::StatusOr<StudyStatus> StudyClient::OrderStudy(const std::string& name, StudyOrder order,
                                                    bool stop_running_trials) {
  v1::OrderStudyRequest request;
  request.set_name(name);
  request.set_order(ToProto(order));
  request.set_stop_running_trials(stop_running_trials);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::OrderStudy, request));
  return FromProto(response.study());
}

absl::StatusOr<ArchiveEnd> StudyClient::ArchiveStudy(const std::string& name,
                                                     const std::string& path) {
  v1::ArchiveStudyRequest request;
  request.set_name(name);
  const auto start = [&](grpc::ClientContext* context) {
    return connection_.study().ArchiveStudy(context, request);
  };
  HPO_ASSIGN_OR_RETURN(const auto last,
                       connection_.ReceiveFile<v1::ArchiveStudyResponse>(path, "archive", start));
  return FromMessage<ArchiveEnd>(last.end());
}

absl::StatusOr<StudyStatus> StudyClient::RestoreStudy(const std::string& name,
                                                      absl::string_view archive) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + ServerConnection::kStreamDeadline);
  v1::RestoreStudyResponse response;
  const auto writer = connection_.study().RestoreStudy(&context, &response);
  v1::RestoreStudyRequest request;
  request.set_name(name);
  do {
    request.set_data(std::string(archive.substr(0, ServerConnection::kPiece)));
    archive.remove_prefix(request.data().size());
  } while (writer->Write(request) && !archive.empty());
  writer->WritesDone();
  HPO_RETURN_IF_ERROR(connection_.Describe(writer->Finish()));
  return FromProto(response.study());
}

absl::StatusOr<int64_t> StudyClient::DeleteStudy(const std::string& name,
                                                 const std::string& archive_sha256) {
  v1::DeleteStudyRequest request;
  request.set_name(name);
  request.set_archive_sha256(archive_sha256);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::DeleteStudy, request));
  return response.trials();
}

absl::StatusOr<Attributes> StudyClient::ChangeAttributes(const std::string& study,
                                                         std::optional<TrialNumber> number,
                                                         const AttributeChange& change) {
  auto request = ToMessage<v1::AnnotateRequest>(change);
  request.set_study(study);
  if (number) request.set_number(number->value);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::Annotate, request));
  return FromProto(response.attributes());
}

absl::Status StudyClient::Watch(const std::string& study, int64_t after_sequence,
                                const std::function<bool(WatchEvent)>& on_event) {
  grpc::ClientContext context;
  v1::WatchStudyRequest request;
  request.set_study(study);
  request.set_after_sequence(after_sequence > 0 ? after_sequence : kFromTheFirst);
  const auto reader = connection_.study().WatchStudy(&context, request);
  v1::WatchStudyResponse response;
  while (reader->Read(&response)) {
    absl::StatusOr<WatchEvent> event = FromProto(response);
    if (event.ok() && on_event(*std::move(event))) continue;
    context.TryCancel();
    reader->Finish();  // Cancelled, by us
    return event.status();
  }
  return connection_.Describe(reader->Finish());
}

}  // namespace hpo::cli
