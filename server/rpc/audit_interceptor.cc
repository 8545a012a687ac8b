// Tested by tests/integration/security/test_security_tokens.py.
#include "server/rpc/audit_interceptor.h"

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/message.h"
#include "grpcpp/grpcpp.h"
#include "server/access/method_roles.h"

namespace hpo::server {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

// What a request is about, by the fields that name it: "study=criteria number=12".
std::string SubjectOf(const google::protobuf::Message& request) {
  std::string subject;
  for (const char* name : {"name", "study", "number", "study_name", "study_id", "trial_id",
                           "worker", "order", "role"}) {
    const auto* const field = request.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || field->is_repeated()) continue;
    std::string value;
    const auto& reflection = *request.GetReflection();
    using Field = google::protobuf::FieldDescriptor;
    switch (field->cpp_type()) {
      case Field::CPPTYPE_STRING:
        value = reflection.GetString(request, field);
        break;
      case Field::CPPTYPE_INT64:
        value = absl::StrCat(reflection.GetInt64(request, field));
        break;
      case Field::CPPTYPE_ENUM:
        value = reflection.GetEnum(request, field)->name();
        break;
      default:
        continue;
    }
    if (!value.empty()) absl::StrAppend(&subject, subject.empty() ? "" : " ", name, "=", value);
  }
  return subject;
}

std::string SubjectOfAnswer(const google::protobuf::Message& answer) {
  const auto* const study = answer.GetDescriptor()->FindFieldByName("study");
  if (study == nullptr || study->message_type() == nullptr || study->is_repeated()) return "";
  return SubjectOf(answer.GetReflection()->GetMessage(answer, study));
}

// One call.
class AuditInterceptor final : public grpc::experimental::Interceptor {
 public:
  AuditInterceptor(AccessControl& access, const MethodRule& rule,
                   grpc::experimental::ServerRpcInfo* call)
      : access_(access), rule_(rule), call_(call) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    // While the call begins: a client that hangs up early is not known any more when it ends.
    if (!caller_) caller_ = access_.CallerAt(call_->server_context()->peer());
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      const auto* const message =
          static_cast<const google::protobuf::Message*>(methods->GetRecvMessage());
      // Of a stream the first one names the subject.
      if (message != nullptr && subject_.empty()) subject_ = SubjectOf(*message);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      // A study that is created has its name in a file; the answer says it.
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
