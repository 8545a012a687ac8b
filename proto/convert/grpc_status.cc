#include "proto/convert/grpc_status.h"

#include <optional>
#include <string>

#include "common/base/limits.h"
#include "common/protocol/refusal.h"
#include "hpo/v1/worker.pb.h"

namespace hpo {
namespace {

std::string DetailsOf(const absl::Status& status) {
  const std::optional<Refusal> refusal = RefusalOf(status);
  if (!refusal) return "";
  v1::Refusal proto;
  proto.set_reason(static_cast<v1::RefusalReason>(refusal->reason));
  proto.set_database(refusal->database);
  v1::StatusDetails details;
  details.set_code(status.raw_code());
  details.add_details()->PackFrom(proto);
  return details.SerializeAsString();
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      Shortened(status.message(), kStatusTextLimit), DetailsOf(status));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status converted(static_cast<absl::StatusCode>(status.error_code()),
                         status.error_message());
  v1::StatusDetails details;
  if (!details.ParseFromString(status.error_details())) return converted;
  for (const google::protobuf::Any& any : details.details()) {
    v1::Refusal proto;
    if (!any.UnpackTo(&proto) || proto.reason() == v1::REFUSAL_REASON_UNSPECIFIED) continue;
    if (!v1::RefusalReason_IsValid(proto.reason())) continue;
    return WithRefusal(converted, {static_cast<RefusalReason>(proto.reason()), proto.database()});
  }
  return converted;
}

}  // namespace hpo
