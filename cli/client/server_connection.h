// A connection to hpo-server, and what its calls have in common. For the clients of this folder:
// what is gRPC's or protobuf's stays among them.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/client/advice.h"
#include "common/base/status.h"
#include "common/files/sha256.h"
#include "common/files/write_file.h"
#include "common/tls/server_route.h"
#include "grpcpp/channel.h"
#include "hpo/v1/admin.grpc.pb.h"
#include "hpo/v1/analysis.grpc.pb.h"
#include "hpo/v1/fleet.grpc.pb.h"
#include "hpo/v1/study.grpc.pb.h"

namespace hpo::cli {

// Stubs over one channel. Thread-safe.
class ServerConnection {
 public:
  using Studies = v1::StudyService::Stub;

  static constexpr char kUnreachable[] = "hpo/unreachable";  // a payload: no server answers
  // Of what is sent as a stream.
  static constexpr size_t kPiece = size_t{1} << 20;
  static constexpr auto kStreamDeadline = std::chrono::minutes(10);

  // `deadline` is that of a call. Connects with the first one.
  ServerConnection(tls::ServerRoute route, absl::Duration deadline, ServerSource source);

  const std::string& address() const { return route_.shown; }
  std::string advised_address() const {
    return source_ == ServerSource::kServer && route_.forwarder == nullptr ? route_.shown : "";
  }
  ServerSource source() const { return source_; }
  grpc::Channel& channel() const { return *channel_; }
  Studies& study() const { return *study_; }
  v1::AdminService::Stub& admin() const { return *admin_; }
  v1::FleetService::Stub& fleet() const { return *fleet_; }
  v1::AnalysisService::Stub& analysis() const { return *analysis_; }

  // Of a call that starts now.
  std::chrono::system_clock::time_point Deadline() const {
    return absl::ToChronoTime(absl::Now() + deadline_);
  }

  // Waits for the server. False: `limit` is over, or what TLS says of it does not pass.
  bool WaitUntilReachable(absl::Duration limit) const;

  // What a call has ended with, in words for people; with kUnreachable where no server answers.
  absl::Status Describe(const grpc::Status& status) const;
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Studies::*method)(grpc::ClientContext*,
                                                                const Request&, Response*),
                                const Request& request) {
    return CallOn(*study_, method, request);
  }
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::AdminService::Stub::*method)(grpc::ClientContext*,
                                                                               const Request&,
                                                                               Response*),
                                const Request& request) {
    return CallOn(*admin_, method, request);
  }
  // Writes the pieces of an answer in parts to `path`, whole or not at all; the last message, with
  // its end. `start` makes the call; `what` is named where the digest of the end is another.
  template <typename Message, typename Start>
  absl::StatusOr<Message> ReceiveFile(const std::string& path, const char* what, Start start);

 private:
  static constexpr int kOwnerOnly = 0600;  // a backup holds what workers prove their leases by

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> CallOn(Stub& stub,
                                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                               Response*),
                                  const Request& request);

  const tls::ServerRoute route_;
  const absl::Duration deadline_;
  const ServerSource source_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Studies> study_;
  const std::unique_ptr<v1::AdminService::Stub> admin_;
  const std::unique_ptr<v1::FleetService::Stub> fleet_;
  const std::unique_ptr<v1::AnalysisService::Stub> analysis_;
};

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> ServerConnection::CallOn(
    Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  Response response;
  HPO_RETURN_IF_ERROR(Describe((stub.*method)(&context, request, &response)));
  return response;
}

template <typename Message, typename Start>
absl::StatusOr<Message> ServerConnection::ReceiveFile(const std::string& path, const char* what,
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

}  // namespace hpo::cli
