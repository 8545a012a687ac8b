// The API as JSON: any RPC of any service, by its descriptor, through a channel within the process.
// So a call over HTTP meets the same services, the same checks and the same audit log as one over
// gRPC.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"

namespace google::protobuf {
class MethodDescriptor;
}

namespace hpo::server {

// A method of the API.
struct JsonMethod {
  const google::protobuf::MethodDescriptor* descriptor = nullptr;
  std::string path;  // "/hpo.v1.StudyService/GetStudy"
  bool takes_stream = false;
  bool answers_stream = false;
};

// Takes what a call comes to. Called on threads of gRPC, one call at a time.
class JsonSink {
 public:
  virtual ~JsonSink() = default;
  // The next message. `next` asks for the one after it: false ends the call.
  virtual void Take(std::string json, std::function<void(bool)> next) = 0;
  // The last thing that is called.
  virtual void End(const absl::Status& status) = 0;
};

// Thread-safe.
class JsonGateway {
 public:
  // `channel`: of the services, within the process.
  explicit JsonGateway(std::shared_ptr<grpc::Channel> channel);
  // Waits for the calls under way, which it cancels.
  ~JsonGateway();
  JsonGateway(const JsonGateway&) = delete;

  // `service`: "StudyService", or with its package "optuna.StorageService".
  //   Unimplemented  there is no such method; says which there are
  static absl::StatusOr<JsonMethod> Find(absl::string_view service, absl::string_view method);

  // Makes a call for the caller whom `peer` names (AccessControl::EnterPage). `body`: a request, of
  // a method that takes a stream one a line; empty: {}. An answer that is no stream is cancelled
  // after `limit`.
  void Call(const JsonMethod& method, absl::string_view body, const std::string& peer,
            absl::Duration limit, std::unique_ptr<JsonSink> sink);

 private:
  class Calls;

  const std::shared_ptr<grpc::Channel> channel_;
  const std::shared_ptr<Calls> calls_;
};

}  // namespace hpo::server
