// absl::Status and grpc::Status share codes and messages; a Refusal (common/protocol/refusal.h)
// travels in the details.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace hpo {

// A long message is shortened (kStatusTextLimit): what gRPC cannot carry breaks the call.
grpc::Status ToGrpc(const absl::Status& status);

// Details that are none of ours are left out.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace hpo
