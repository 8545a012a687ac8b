// Tested by tests/server/gate/tls_gate_test.cc.
#include "server/rpc/admission_interceptor.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "grpcpp/grpcpp.h"

namespace hpo::server {
namespace {

constexpr char kOfGrpc[] = "/grpc.";

// One call. It is under way until gRPC destroys this object with the call.
class AdmissionInterceptor final : public grpc::experimental::Interceptor {
 public:
  AdmissionInterceptor(AccessControl& access, grpc::experimental::ServerRpcInfo* call)
      : access_(access), call_(call) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Point::POST_RECV_INITIAL_METADATA)) {
      absl::StatusOr<AccessControl::Permit> allowed =
          access_.Allow(call_->method(), call_->server_context()->peer());
      if (allowed.ok()) {
        permit_.emplace(*std::move(allowed));
      } else {
        // The method finds nothing to read and ends.
        call_->server_context()->TryCancel();
      }
    }
    methods->Proceed();
  }

 private:
  AccessControl& access_;
  grpc::experimental::ServerRpcInfo* const call_;
  std::optional<AccessControl::Permit> permit_;
};

class AdmissionInterceptorFactory final
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit AdmissionInterceptorFactory(AccessControl& access) : access_(access) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* call) override {
    // gRPC owns it.
    return absl::StartsWith(call->method(), kOfGrpc) ? new AdmissionInterceptor(access_, call)
                                                     : nullptr;
  }

 private:
  AccessControl& access_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeAdmissionInterceptors(
    AccessControl& access) {
  return std::make_unique<AdmissionInterceptorFactory>(access);
}

}  // namespace hpo::server
