#include "proto/convert/grpc_status.h"

#include <optional>
#include <string>

#include "common/base/limits.h"
#include "common/protocol/refusal.h"
#include "hpo/v1/worker.pb.h"
#include "proto/convert/enum_pairs.h"

namespace hpo {
namespace {

constexpr EnumPairs<RefusalReason, v1::RefusalReason, 5> kReasons = {{
    {RefusalReason::kSuperseded, v1::REFUSAL_REASON_SUPERSEDED},
    {RefusalReason::kUnknownTrial, v1::REFUSAL_REASON_UNKNOWN_TRIAL},
    {RefusalReason::kAnotherDatabase, v1::REFUSAL_REASON_ANOTHER_DATABASE},
    {RefusalReason::kConfiguration, v1::REFUSAL_REASON_CONFIGURATION},
    {RefusalReason::kNameTaken, v1::REFUSAL_REASON_NAME_TAKEN},
}};

std::string DetailsOf(const absl::Status& status) {
  const std::optional<Refusal> refusal = RefusalOf(status);
  if (!refusal) return "";
  v1::Refusal proto;
  proto.set_reason(ToWire(kReasons, refusal->reason));
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
    if (!any.UnpackTo(&proto)) continue;
    const auto reason = FromWire(kReasons, proto.reason(), "a reason");
    if (reason.ok()) return WithRefusal(converted, {*reason, proto.database()});
  }
  return converted;
}

}  // namespace hpo
