// Calls of WorkerService, the message chosen by the input, half of them with a lease that is real.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/fuzzed_server.h"

namespace {

hpo::FuzzedServer& Server() {
  static auto* const kServer = new hpo::FuzzedServer;
  return *kServer;
}

// What the calls of one input know of each other.
struct Conversation {
  hpo::FuzzBytes bytes;
  std::string session;
  hpo::v1::Assignment assignment;

  template <typename Message>
  void Fill(Message& message) {
    hpo::RandomMessage(
        [this](uint64_t n) { return bytes.Below(n); },
        {session, assignment.lease_token(), "plain", "bert", "score", "macro_f1", "w", "k"})
        .Fill(message);
  }

  // As a worker that holds it would.
  template <typename Message>
  void SetLease(Message& message) {
    if (bytes.Below(4) == 0) return;
    message.set_study(assignment.study());
    message.set_trial(assignment.trial());
    message.set_attempt(assignment.attempt());
    message.set_lease_token(assignment.lease_token());
  }
};

template <typename Request, typename Response>
using Method = grpc::Status (hpo::server::WorkerServiceImpl::*)(grpc::ServerContext*,
                                                                const Request*, Response*);

template <typename Request, typename Response>
Response Send(Method<Request, Response> method, const Request& request) {
  grpc::ServerContext context;
  Response response;
  hpo::FuzzedServer::CheckAnswer((Server().workers().*method)(&context, &request, &response));
  return response;
}

void Acquire(Conversation& talk) {
  hpo::v1::AcquireTrialRequest request;
  talk.Fill(request);
  if (talk.bytes.Below(4) != 0) request.set_session(talk.session);
  request.clear_wait();
  const auto response = Send(&hpo::server::WorkerServiceImpl::AcquireTrial, request);
  if (response.has_assignment()) talk.assignment = response.assignment();
}

void CallOne(Conversation& talk) {
  switch (talk.bytes.Below(6)) {
    case 0: {
      hpo::v1::RegisterWorkerRequest request;
      talk.Fill(request);
      Send(&hpo::server::WorkerServiceImpl::RegisterWorker, request);
      return;
    }
    case 1:
      return Acquire(talk);
    case 2: {
      hpo::v1::HeartbeatRequest request;
      talk.Fill(request);
      talk.SetLease(*request.add_leases());
      Send(&hpo::server::WorkerServiceImpl::Heartbeat, request);
      return;
    }
    case 3: {
      hpo::v1::ReportMeasurementsRequest request;
      talk.Fill(request);
      talk.SetLease(request);
      Send(&hpo::server::WorkerServiceImpl::ReportMeasurements, request);
      return;
    }
    case 4: {
      hpo::v1::ReleaseTrialRequest request;
      talk.Fill(request);
      talk.SetLease(request);
      Send(&hpo::server::WorkerServiceImpl::ReleaseTrial, request);
      return;
    }
    default: {
      hpo::v1::FinishTrialRequest request;
      talk.Fill(request);
      talk.SetLease(request);
      Send(&hpo::server::WorkerServiceImpl::FinishTrial, request);
      return;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Conversation talk{.bytes = hpo::FuzzBytes(data, size), .session = Server().Register()};
  Acquire(talk);
  for (int call = 0; call < 8 && !talk.bytes.empty(); ++call) CallOne(talk);
  Server().InputDone();
  return 0;
}
