// Tested by tests/integration/security/test_security_tokens.py.
#include "server/rpc/audit_interceptor.h"

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "grpcpp/grpcpp.h"
#include "server/access/method_roles.h"
#include "server/rpc/audit_subject.h"
#include "server/rpc/rpc_macros.h"

namespace hpo::server {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

// One call.
class AuditInterceptor final : public grpc::experimental::Interceptor {
 public:
  AuditInterceptor(AccessControl& access, const MethodRule& rule,
                   grpc::experimental::ServerRpcInfo* call)
      : access_(access), rule_(rule), call_(call) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    // While the call begins: a client that hangs up early is not known any more when it ends.
    if (!caller_) caller_ = access_.CallerAt(PeerOf(*call_->server_context(), access_));
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      const auto* const message =
          static_cast<const google::protobuf::Message*>(methods->GetRecvMessage());
      // Of a stream the first one names the subject.
      if (message != nullptr && subject_.empty()) subject_ = SubjectOf(*message);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      const auto* const answer =
          static_cast<const google::protobuf::Message*>(methods->GetSendMessage());
      if (answer != nullptr && subject_.empty()) subject_ = SubjectOfAnswer(*answer);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      Write(methods->GetSendStatus());
    }
    methods->Proceed();
  }

 private:
  void Write(const grpc::Status& status) {
    // What was not allowed has been written by AccessControl.
    const bool refused = status.error_code() == grpc::StatusCode::UNAUTHENTICATED;
    if (refused || !caller_ || !Includes(caller_->role, rule_.role)) return;
    access_.audit().Write(
        {.event = "call",
         .who = caller_->name,
         .role = std::string(RoleName(caller_->role)),
         .from = caller_->from,
         .method = std::string(rule_.method),
         .what = subject_,
         .result = absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code())),
         .why = status.error_message()});
  }

  AccessControl& access_;
  const MethodRule rule_;
  grpc::experimental::ServerRpcInfo* const call_;
  std::optional<Caller> caller_;
  std::string subject_;
};

class AuditInterceptorFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit AuditInterceptorFactory(AccessControl& access) : access_(access) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* call) override {
    const std::optional<MethodRule> rule = RuleOf(call->method());
    // gRPC owns it.
    return rule && rule->is_change ? new AuditInterceptor(access_, *rule, call) : nullptr;
  }

 private:
  AccessControl& access_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeAuditInterceptors(
    AccessControl& access) {
  return std::make_unique<AuditInterceptorFactory>(access);
}

}  // namespace hpo::server
