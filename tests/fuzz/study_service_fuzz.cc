// Calls of StudyService, the message chosen by the input.
#include <cstddef>
#include <cstdint>

#include "proto/convert/grpc_status.h"
#include "proto/convert/request_check.h"
#include "proto/convert/trial_proto.h"
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

template <typename Request, typename Response>
void Send(hpo::FuzzBytes& bytes,
          grpc::Status (hpo::StudyServiceImpl::*method)(grpc::ServerContext*, const Request*,
                                                        Response*)) {
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

void CallOne(hpo::FuzzBytes& bytes) {
  switch (bytes.Below(11)) {
    case 0:
      return Send(bytes, &hpo::StudyServiceImpl::CreateStudy);
    case 1:
      return Send(bytes, &hpo::StudyServiceImpl::GetStudy);
    case 2:
      return Send(bytes, &hpo::StudyServiceImpl::ListStudies);
    case 3:
      return Send(bytes, &hpo::StudyServiceImpl::UpdateStudy);
    case 4:
      return Send(bytes, &hpo::StudyServiceImpl::PreemptTrial);
    case 5:
      return Send(bytes, &hpo::StudyServiceImpl::ListTrials);
    case 6:
      return Send(bytes, &hpo::StudyServiceImpl::GetTrial);
    case 7:
      return Send(bytes, &hpo::StudyServiceImpl::ListBestTrials);
    case 8:
      return Send(bytes, &hpo::StudyServiceImpl::EstimateMemory);
    case 9:
      return Import(bytes);
    default:
      return Send(bytes, &hpo::StudyServiceImpl::EnqueueTrial);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hpo::FuzzBytes bytes(data, size);
  Server().Register();
  for (int call = 0; call < 8 && !bytes.empty(); ++call) CallOne(bytes);
  Server().InputDone();
  return 0;
}
