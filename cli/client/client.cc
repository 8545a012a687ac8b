// Tested by tests/cli/program/program_test.cc.
#include "cli/client/client.h"

#include <grpc/support/log.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/client/advice.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/command_line/server_address.h"
#include "common/command_line/shell_word.h"
#include "common/files/sha256.h"
#include "common/files/write_file.h"
#include "grpcpp/channel.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "hpo/v1/admin.grpc.pb.h"
#include "hpo/v1/study.grpc.pb.h"
#include "proto/convert/grpc_status.h"
#include "proto/convert/outcome_proto.h"
#include "proto/convert/params_proto.h"
#include "proto/convert/study_proto.h"
#include "proto/convert/time_proto.h"
#include "proto/convert/trial_proto.h"

namespace hpo {
namespace {

constexpr auto kImportDeadline = std::chrono::minutes(10);
constexpr size_t kPiece = size_t{1} << 20;  // of what is sent as a stream
constexpr int kOwnerOnly = 0600;            // a backup holds what workers prove their leases by
constexpr int64_t kFromTheFirst = -1;       // on the wire, 0 is "from now"

constexpr char kNoWorker[] = "no worker is connected";  // in what a study waits for
constexpr char kUnreachable[] = "hpo/unreachable";      // of errors, where no server answers

using Studies = v1::StudyService::Stub;

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  gpr_set_log_function([](gpr_log_func_args*) {});  // people get one line, from Describe
  grpc::ChannelArguments arguments;
  // The server speaks plaintext on this machine alone: a proxy of the environment is for others.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMessageLimit.most);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// hpo-server's option for this address, where it is not the usual one.
std::string ListenOption(const std::string& address) {
  return IsUsualAddress(address) ? "" : absl::StrCat(" --listen ", ShellWord(address));
}

absl::StatusOr<WatchEvent> EventOf(const v1::WatchStudyResponse& response) {
  switch (response.kind_case()) {
    case v1::WatchStudyResponse::kSnapshot: {
      HPO_ASSIGN_OR_RETURN(StudyStatus study, FromProto(response.snapshot()));
      return WatchEvent(std::move(study));
    }
    case v1::WatchStudyResponse::kChange: {
      HPO_ASSIGN_OR_RETURN(Trial trial, FromProto(response.change().trial()));
      return WatchEvent(TrialChanged{.kind = response.change().kind(),
                                     .trial = std::move(trial),
                                     .sequence = response.change().sequence()});
    }
    default:
      return WatchEvent(NothingNew{.sequence = response.bookmark()});
  }
}

}  // namespace

// Stubs over one channel, and what calls have in common.
class Client::Connection {
 public:
  // `advised_address`: for the commands in errors; empty: they stay as they are.
  Connection(const std::string& address, const std::string& advised_address,
             absl::Duration deadline)
      : address_(address),
        advised_address_(advised_address),
        deadline_(deadline),
        channel_(Connect(address)),
        study_(v1::StudyService::NewStub(channel_)),
        admin_(v1::AdminService::NewStub(channel_)) {}

  grpc::Channel& channel() const { return *channel_; }
  Studies& study() const { return *study_; }
  v1::AdminService::Stub& admin() const { return *admin_; }

  // Of a call that starts now.
  std::chrono::system_clock::time_point Deadline() const {
    return absl::ToChronoTime(absl::Now() + deadline_);
  }

  absl::Status Describe(const grpc::Status& status) const;
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Studies::*method)(grpc::ClientContext*,
                                                                const Request&, Response*),
                                const Request& request);
  // A call whose request is a trial's study and number, and whose answer is the trial.
  template <typename Request, typename Response>
  absl::StatusOr<Trial> CallForTrial(grpc::Status (Studies::*method)(grpc::ClientContext*,
                                                                     const Request&, Response*),
                                     const std::string& study, TrialNumber number);
  // Writes the pieces of an answer in parts to `path`, whole or not at all; the last message, with
  // its end. `start` makes the call; `what` is named where the digest of the end is another.
  template <typename Message, typename Start>
  absl::StatusOr<Message> ReceiveFile(const std::string& path, const char* what, Start start);

 private:
  const std::string address_;
  const std::string advised_address_;
  const absl::Duration deadline_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Studies> study_;
  const std::unique_ptr<v1::AdminService::Stub> admin_;
};

absl::Status Client::Connection::Describe(const grpc::Status& status) const {
  const bool away = status.error_code() == grpc::StatusCode::UNAVAILABLE &&
                    channel_->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY;
  if (away) {
    absl::Status unreachable = absl::UnavailableError(absl::StrCat(
        "cannot reach hpo-server at ", address_,
        ": is it running? to start one: hpo-server --study criteria", ListenOption(address_),
        "; to read a database file without one: hpo --db FILE"));
    unreachable.SetPayload(kUnreachable, absl::Cord());
    return unreachable;
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnimplementedError(
        absl::StrCat("what answers at ", address_, " is not an hpo-server of this version"));
  }
  const absl::Status error = FromGrpc(status);
  return absl::Status(error.code(), WithServer(error.message(), advised_address_));
}

template <typename Request, typename Response>
absl::StatusOr<Response> Client::Connection::Call(
    grpc::Status (Studies::*method)(grpc::ClientContext*, const Request&, Response*),
    const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  Response response;
  HPO_RETURN_IF_ERROR(Describe(((*study_).*method)(&context, request, &response)));
  return response;
}

template <typename Message, typename Start>
absl::StatusOr<Message> Client::Connection::ReceiveFile(const std::string& path, const char* what,
                                                        Start start) {
  DurableFile file(path, kOwnerOnly);
  HPO_RETURN_IF_ERROR(file.Create());
  grpc::ClientContext context;
  const auto reader = start(&context);
  Sha256 digest;
  Message message;
  absl::Status written;
  while (written.ok() && reader->Read(&message)) {
    digest.Update(message.data());
    written = file.Write(message.data().data(), message.data().size());
  }
  if (!written.ok()) context.TryCancel();
  const grpc::Status over = reader->Finish();
  HPO_RETURN_IF_ERROR(written);
  HPO_RETURN_IF_ERROR(Describe(over));
  const std::string received = digest.HexDigest();
  if (!message.has_end() || message.end().sha256() != received) {
    return absl::DataLossError(absl::StrCat(what, ": expected digest ", message.end().sha256(),
                                            ", received ", received, "; try again"));
  }
  HPO_RETURN_IF_ERROR(file.Commit());
  return message;
}

template <typename Request, typename Response>
absl::StatusOr<Trial> Client::Connection::CallForTrial(
    grpc::Status (Studies::*method)(grpc::ClientContext*, const Request&, Response*),
    const std::string& study, TrialNumber number) {
  Request request;
  request.set_study(study);
  request.set_number(number.value);
  HPO_ASSIGN_OR_RETURN(const auto response, Call(method, request));
  return FromProto(response.trial());
}

Client::Client(const std::string& address, absl::Duration deadline, Source source)
    : address_(address),
      source_(source),
      connection_(std::make_unique<Connection>(address, source == Source::kServer ? address : "",
                                               deadline)) {}

Client::~Client() = default;

absl::StatusOr<ServerStatus> Client::GetServer() {
  grpc::ClientContext context;
  context.set_deadline(connection_->Deadline());
  v1::GetServerResponse response;
  const grpc::Status answered =
      connection_->admin().GetServer(&context, v1::GetServerRequest(), &response);
  if (answered.error_code() == grpc::StatusCode::UNIMPLEMENTED) return ServerStatus{};
  HPO_RETURN_IF_ERROR(connection_->Describe(answered));
  return ServerStatus{.version = response.version(),
                      .database = response.database(),
                      .epoch = response.epoch(),
                      .trouble = response.trouble(),
                      .damage = {response.damage().begin(), response.damage().end()}};
}

absl::StatusOr<Bytes> Client::BackUp(const std::string& path) {
  const auto start = [this](grpc::ClientContext* context) {
    return connection_->admin().BackUpDatabase(context, v1::BackUpDatabaseRequest());
  };
  HPO_ASSIGN_OR_RETURN(const auto last,
                       connection_->ReceiveFile<v1::BackUpDatabaseResponse>(path, "backup", start));
  return Bytes{last.end().size_bytes()};
}

absl::StatusOr<StudyStatus> Client::GetStudy(const std::string& name) {
  v1::GetStudyRequest request;
  request.set_name(name);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::GetStudy, request));
  return ReadStudy(response.study());
}

absl::StatusOr<StudyStatus> Client::ReadStudy(const v1::Study& study) const {
  HPO_ASSIGN_OR_RETURN(StudyStatus status, FromProto(study));
  if (source_ == Source::kServer) {
    status.waiting_for = WithServer(status.waiting_for, address_);
    return status;
  }
  status.waiting_for = WithoutGoingOn(status.waiting_for);
  if (source_ == Source::kOwn) {
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

absl::StatusOr<std::vector<StudyStatus>> Client::ListStudies() {
  std::vector<StudyStatus> studies;
  v1::ListStudiesRequest request;
  request.set_page_size(kPageLimit.most);
  do {
    HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::ListStudies, request));
    for (const v1::Study& study : response.studies()) {
      HPO_ASSIGN_OR_RETURN(studies.emplace_back(), ReadStudy(study));
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return studies;
}

absl::StatusOr<Client::StudyCheck> Client::CreateStudy(const std::string& yaml,
                                                       const std::string& origin,
                                                       bool validate_only) {
  v1::CreateStudyRequest request;
  request.set_yaml(yaml);
  request.set_origin(origin);
  request.set_validate_only(validate_only);
  request.set_request_id(RandomId());
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::CreateStudy, request));
  StudyCheck check{.created = response.created()};
  HPO_ASSIGN_OR_RETURN(check.study, FromProto(response.study()));
  return check;
}

absl::StatusOr<StudyStatus> Client::UpdateStudy(const StudyChange& change) {
  v1::UpdateStudyRequest request;
  request.set_name(change.name);
  if (change.trials) request.set_trials(*change.trials);
  if (change.add_trials) request.set_add_trials(*change.add_trials);
  if (change.failures_in_a_row) request.set_failures_in_a_row(*change.failures_in_a_row);
  if (change.failed_share) request.set_failed_share(*change.failed_share);
  if (change.target) request.set_target(*change.target);
  if (change.remove_target) request.set_remove_target(true);
  if (change.wall_clock) *request.mutable_wall_clock() = ToProto(*change.wall_clock);
  request.set_request_id(RandomId());
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::UpdateStudy, request));
  return FromProto(response.study());
}

absl::StatusOr<Client::Archived> Client::ArchiveStudy(const std::string& name,
                                                      const std::string& path) {
  v1::ArchiveStudyRequest request;
  request.set_name(name);
  const auto start = [&](grpc::ClientContext* context) {
    return connection_->study().ArchiveStudy(context, request);
  };
  HPO_ASSIGN_OR_RETURN(const auto last,
                       connection_->ReceiveFile<v1::ArchiveStudyResponse>(path, "archive", start));
  return Archived{.size = Bytes{last.end().size_bytes()},
                  .sha256 = last.end().sha256(),
                  .num_trials = last.end().trials()};
}

absl::StatusOr<StudyStatus> Client::RestoreStudy(const std::string& name,
                                                 absl::string_view archive) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kImportDeadline);
  v1::RestoreStudyResponse response;
  const auto writer = connection_->study().RestoreStudy(&context, &response);
  v1::RestoreStudyRequest request;
  request.set_name(name);
  do {
    request.set_data(std::string(archive.substr(0, kPiece)));
    archive.remove_prefix(request.data().size());
  } while (writer->Write(request) && !archive.empty());
  writer->WritesDone();
  HPO_RETURN_IF_ERROR(connection_->Describe(writer->Finish()));
  return FromProto(response.study());
}

absl::StatusOr<int64_t> Client::DeleteStudy(const std::string& name,
                                            const std::string& archive_sha256) {
  v1::DeleteStudyRequest request;
  request.set_name(name);
  request.set_archive_sha256(archive_sha256);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::DeleteStudy, request));
  return response.trials();
}

absl::StatusOr<StudyEdited> Client::EditStudy(const StudyEditing& edit) {
  v1::EditStudyRequest request;
  request.set_name(edit.study);
  request.set_yaml(edit.yaml);
  request.set_origin(edit.origin);
  request.set_validate_only(edit.validate_only);
  for (const auto& [parameter, domain] : edit.ranges) {
    v1::ParameterRange& range = *request.add_ranges();
    range.set_parameter(parameter);
    *range.mutable_domain() = ToProto(domain);
  }
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::EditStudy, request));
  StudyEdited edited{.study = {}, .num_outside = response.outside()};
  HPO_ASSIGN_OR_RETURN(edited.study, FromProto(response.study()));
  for (const v1::ParameterRange& range : response.before()) {
    HPO_ASSIGN_OR_RETURN(edited.before[range.parameter()], FromProto(range.domain()));
  }
  for (const v1::ParameterRange& range : response.after()) {
    HPO_ASSIGN_OR_RETURN(edited.after[range.parameter()], FromProto(range.domain()));
  }
  for (const int64_t number : response.cancelled()) {
    edited.cancelled.push_back(TrialNumber{number});
  }
  return edited;
}

absl::StatusOr<Trial> Client::EnqueueTrial(const EnqueuedTrial& trial) {
  v1::EnqueueTrialRequest request;
  request.set_study(trial.study);
  *request.mutable_params() = ToProto(trial.params);
  request.set_demonstration(trial.demonstration);
  request.set_skip_admission(trial.skip_admission);
  request.set_forced_micro_batch(trial.forced_micro_batch);
  request.set_request_id(RandomId());
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::EnqueueTrial, request));
  return FromProto(response.trial());
}

absl::StatusOr<Attributes> Client::ChangeAttributes(const std::string& study,
                                                    std::optional<TrialNumber> number,
                                                    const AttributeChange& change) {
  v1::AnnotateRequest request;
  request.set_study(study);
  if (number) request.set_number(number->value);
  if (change.note) request.set_note(*change.note);
  request.mutable_add_tags()->Assign(change.add_tags.begin(), change.add_tags.end());
  request.mutable_remove_tags()->Assign(change.remove_tags.begin(), change.remove_tags.end());
  *request.mutable_attributes() = ToProto(change.set);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::Annotate, request));
  return FromProto(response.attributes());
}

absl::StatusOr<RetriedTrials> Client::RetryTrials(const std::string& study,
                                                  const std::vector<TrialNumber>& numbers) {
  v1::RetryTrialsRequest request;
  request.set_study(study);
  for (const TrialNumber number : numbers) request.add_numbers(number.value);
  request.set_all_failed(numbers.empty());
  request.set_request_id(RandomId());
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::RetryTrials, request));
  RetriedTrials retried;
  for (const v1::Trial& trial : response.trials()) {
    HPO_ASSIGN_OR_RETURN(retried.trials.emplace_back(), FromProto(trial));
  }
  for (const v1::RetryTrialsResponse::Skipped& skipped : response.skipped()) {
    retried.skipped.emplace_back(TrialNumber{skipped.number()}, skipped.why());
  }
  return retried;
}

absl::StatusOr<ImportResult> Client::ImportTrials(const TrialImport& import) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kImportDeadline);
  v1::ImportTrialsResponse response;
  const auto writer = connection_->study().ImportTrials(&context, &response);
  v1::ImportTrialsRequest request;
  request.set_study(import.study);
  request.set_count_against_budget(import.count_against_budget);
  bool taken = true;
  size_t size = 0;
  for (size_t i = 0; i < import.trials.size() && taken; ++i) {
    v1::ImportedTrial& trial = *request.add_trials();
    trial = ToProto(import.trials[i]);
    size += trial.ByteSizeLong();
    if (size < kPiece) continue;
    taken = writer->Write(request);
    request.clear_trials();
    size = 0;
  }
  if (taken) writer->Write(request);
  writer->WritesDone();
  HPO_RETURN_IF_ERROR(connection_->Describe(writer->Finish()));
  return ImportResult{
      .study = response.study(), .num_added = response.added(), .num_known = response.known()};
}

absl::StatusOr<Trial> Client::PreemptTrial(const std::string& study, TrialNumber number) {
  return connection_->CallForTrial(&Studies::PreemptTrial, study, number);
}

absl::StatusOr<Trial> Client::StopTrial(const std::string& study, TrialNumber number) {
  return connection_->CallForTrial(&Studies::StopTrial, study, number);
}

absl::StatusOr<Trial> Client::CancelTrial(const std::string& study, TrialNumber number) {
  return connection_->CallForTrial(&Studies::CancelTrial, study, number);
}

absl::StatusOr<StudyStatus> Client::OrderStudy(const std::string& name, StudyOrder order,
                                               bool stop_running_trials) {
  v1::OrderStudyRequest request;
  request.set_name(name);
  request.set_order(ToProto(order));
  request.set_stop_running_trials(stop_running_trials);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::OrderStudy, request));
  return FromProto(response.study());
}

absl::StatusOr<TrialListing> Client::ListTrials(const TrialQuery& query) {
  v1::ListTrialsRequest request;
  request.set_study(query.study);
  for (const TrialState state : query.states) request.add_states(ToProto(state));
  request.set_page_size(query.page_size);
  request.set_page_token(query.page_token);
  request.set_newest_first(query.newest_first);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::ListTrials, request));
  TrialListing listing{.next_token = response.next_page_token(), .total = response.total()};
  for (const v1::Trial& trial : response.trials()) {
    HPO_ASSIGN_OR_RETURN(listing.trials.emplace_back(), FromProto(trial));
  }
  return listing;
}

absl::StatusOr<TrialView> Client::GetTrial(const std::string& study, TrialNumber number) {
  v1::GetTrialRequest request;
  request.set_study(study);
  request.set_number(number.value);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::GetTrial, request));
  TrialView view;
  HPO_ASSIGN_OR_RETURN(view.trial, FromProto(response.trial()));
  view.sampler = response.trial().sampler();
  for (const v1::Measurement& measurement : response.trial().measurements()) {
    view.measurements.push_back(FromProto(measurement));
  }
  return view;
}

absl::StatusOr<std::vector<Trial>> Client::BestTrials(const std::string& study, int count) {
  v1::ListBestTrialsRequest request;
  request.set_study(study);
  request.set_count(count);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::ListBestTrials, request));
  std::vector<Trial> trials;
  for (const v1::Trial& trial : response.trials()) {
    HPO_ASSIGN_OR_RETURN(trials.emplace_back(), FromProto(trial));
  }
  return trials;
}

absl::Status AddFront(Client& client, StudyStatus& study) {
  const std::vector<Objective>& objectives = study.spec.objectives;
  if (objectives.size() < 2) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const std::vector<Trial> best,
                       client.BestTrials(study.spec.name, /*count=*/0));
  study.front.clear();
  for (const Trial& trial : best) {
    const auto* completed = trial.outcome ? std::get_if<Completed>(&*trial.outcome) : nullptr;
    if (completed == nullptr) continue;
    FrontTrial& on_front = study.front.emplace_back(FrontTrial{.number = trial.id.number});
    for (const Objective& objective : objectives) {
      const auto value = completed->metrics.find(objective.metric);
      const bool known = value != completed->metrics.end();
      on_front.values.push_back(known ? value->second : std::nan(""));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<MemoryVerdict> Client::EstimateMemory(const MemoryQuery& query) {
  v1::EstimateMemoryRequest request;
  request.set_study(query.study);
  *request.mutable_params() = ToProto(query.params);
  request.set_worker(query.worker);
  request.set_limit_bytes(query.limit.count);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&Studies::EstimateMemory, request));
  MemoryVerdict verdict{.estimate = FromProto(response.estimate()),
                        .fits = response.fits(),
                        .usable = Bytes{response.usable_bytes()},
                        .explanation = response.explanation()};
  HPO_ASSIGN_OR_RETURN(verdict.plan, FromProto(response.plan()));
  return verdict;
}

absl::Status Client::Watch(const std::string& study, int64_t after_sequence,
                           const std::function<bool(WatchEvent)>& on_event) {
  grpc::ClientContext context;
  v1::WatchStudyRequest request;
  request.set_study(study);
  request.set_after_sequence(after_sequence > 0 ? after_sequence : kFromTheFirst);
  const auto reader = connection_->study().WatchStudy(&context, request);
  v1::WatchStudyResponse response;
  while (reader->Read(&response)) {
    absl::StatusOr<WatchEvent> event = EventOf(response);
    if (event.ok() && on_event(*std::move(event))) continue;
    context.TryCancel();
    reader->Finish();  // Cancelled, by us
    return event.status();
  }
  return connection_->Describe(reader->Finish());
}

bool Client::WaitUntilReachable(absl::Duration limit) {
  return connection_->channel().WaitForConnected(std::chrono::system_clock::now() +
                                                 absl::ToChronoMilliseconds(limit));
}

bool IsUnreachable(const absl::Status& status) {
  return status.GetPayload(kUnreachable).has_value();
}

absl::Status ForEachTrial(Client& client, TrialQuery query,
                          absl::FunctionRef<absl::Status(Trial& trial)> take) {
  query.page_size = kPageLimit.most;
  do {
    HPO_ASSIGN_OR_RETURN(TrialListing listing, client.ListTrials(query));
    for (Trial& trial : listing.trials) HPO_RETURN_IF_ERROR(take(trial));
    query.page_token = listing.next_token;
  } while (!query.page_token.empty());
  return absl::OkStatus();
}

}  // namespace hpo
