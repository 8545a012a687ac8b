// Calls of StudyService, the message chosen by the input.
#include <cstddef>
#include <cstdint>

#include "proto/convert/grpc_status.h"
#include "proto/convert/request_check.h"
#include "proto/convert/study_exchange_proto.h"
#include "tests/fuzz/fuzzed_server.h"

namespace {

hpo::FuzzedServer& Server() {
  static auto* const kServer = new hpo::FuzzedServer;
  return *kServer;
}

template <typename Message>
Message Filled(hpo::FuzzBytes& bytes) {
  Message message;
  hpo::RandomMessage([&bytes](uint64_t n) { return bytes.Below(n); },
                     {"plain", "bert", "x", "y", "a", "score", "macro_f1", "train.batch_size",
                      "model.name", "tiny", "w", hpo::kFuzzedStudies[0], hpo::kFuzzedStudies[1]})
      .Fill(message);
  return message;
}

template <typename Service, typename Request, typename Response>
void Send(hpo::FuzzBytes& bytes,
          grpc::Status (Service::*method)(grpc::ServerContext*, const Request*, Response*)) {
  grpc::ServerContext context;
  const Request request = Filled<Request>(bytes);
  Response response;
  hpo::FuzzedServer::CheckAnswer((Server().studies().*method)(&context, &request, &response));
}

// What StudyServiceImpl::ImportTrials does with each message of its stream.
void Import(hpo::FuzzBytes& bytes) {
  const auto request = Filled<hpo::v1::ImportTrialsRequest>(bytes);
  if (!hpo::CheckRequest(request).ok()) return;
  hpo::TrialImport import{.study = request.study(),
                          .count_against_budget = request.count_against_budget()};
  for (const hpo::v1::ImportedTrial& trial : request.trials()) {
    auto converted = hpo::FromProto(trial);
    if (!converted.ok()) return;
    import.trials.push_back(*std::move(converted));
  }
  hpo::FuzzedServer::CheckAnswer(hpo::ToGrpc(Server().study_api().ImportTrials(import).status()));
}

// What StudyQueryService::WatchStudy does until it has told what there is; it would then wait for
// more.
void Watch(hpo::FuzzBytes& bytes) {
  const auto request = Filled<hpo::v1::WatchStudyRequest>(bytes);
  if (!hpo::CheckRequest(request).ok()) return;
  const auto study = Server().study_api().queries().GetStudy(request.study());
  hpo::FuzzedServer::CheckAnswer(hpo::ToGrpc(study.status()));
  const int64_t after = request.after_sequence();
  if (!study.ok() || after == 0 || after >= study->sequence) return;
  bool told = false;
  const auto emit = [&told](const hpo::WatchEvent& event) {
    hpo::ToProto(event);
    told = !std::holds_alternative<hpo::StudyStatus>(event);
    return true;
  };
  hpo::FuzzedServer::CheckAnswer(hpo::ToGrpc(Server().study_api().queries().WatchStudy(
      study->spec.name, after, emit, [&told] { return told; })));
}

// So that there are trials that run.
void Acquire(hpo::FuzzBytes& bytes, const std::string& session) {
  grpc::ServerContext context;
  hpo::v1::AcquireTrialRequest request;
  request.set_session(session);
  request.set_request_id(absl::StrCat(bytes.Below(65536)));
  request.set_capacity_bytes(int64_t{8} << 30);
  hpo::v1::AcquireTrialResponse response;
  hpo::FuzzedServer::CheckAnswer(Server().workers().AcquireTrial(&context, &request, &response));
}

void CallOne(hpo::FuzzBytes& bytes, const std::string& session) {
  switch (bytes.Below(16)) {
    case 0:
      return Send(bytes, &hpo::server::StudyServiceImpl::CreateStudy);
    case 1:
      return Send(bytes, &hpo::server::StudyServiceImpl::GetStudy);
    case 2:
      return Send(bytes, &hpo::server::StudyServiceImpl::ListStudies);
    case 3:
      return Send(bytes, &hpo::server::StudyServiceImpl::UpdateStudy);
    case 4:
      return Send(bytes, &hpo::server::StudyServiceImpl::PreemptTrial);
    case 5:
      return Send(bytes, &hpo::server::StudyServiceImpl::ListTrials);
    case 6:
      return Send(bytes, &hpo::server::StudyServiceImpl::GetTrial);
    case 7:
      return Send(bytes, &hpo::server::StudyServiceImpl::ListBestTrials);
    case 8:
      return Send(bytes, &hpo::server::StudyServiceImpl::EstimateMemory);
    case 9:
      return Import(bytes);
    case 10:
      return Send(bytes, &hpo::server::StudyServiceImpl::StopTrial);
    case 11:
      return Send(bytes, &hpo::server::StudyServiceImpl::CancelTrial);
    case 12:
      return Send(bytes, &hpo::server::StudyServiceImpl::OrderStudy);
    case 13:
      return Watch(bytes);
    case 14:
      return Acquire(bytes, session);
    default:
      return Send(bytes, &hpo::server::StudyServiceImpl::EnqueueTrial);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hpo::FuzzBytes bytes(data, size);
  const std::string session = Server().Register();
  for (int call = 0; call < 8 && !bytes.empty(); ++call) CallOne(bytes, session);
  Server().InputDone();
  return 0;
}
