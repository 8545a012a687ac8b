// Why a database will never take a call, as part of the status that refuses it. A status' code
// alone is no such reason: it may come from another server on the same address, a proxy or a full
// disk. The meaning of each reason is documented in proto/hpo/v1/worker.proto.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace hpo {

// Numbered as in proto/hpo/v1/worker.proto.
enum class RefusalReason {
  kSuperseded = 1,
  kUnknownTrial,
  kAnotherDatabase,
  kConfiguration,
  kNameTaken
};

struct Refusal {
  RefusalReason reason = RefusalReason::kSuperseded;
  std::string database;  // that refuses
  bool operator==(const Refusal&) const = default;
};

// `status` with `refusal` attached. OK stays OK.
absl::Status WithRefusal(absl::Status status, const Refusal& refusal);

// The refusal attached to `status`; nullopt where there is none that this version knows.
std::optional<Refusal> RefusalOf(const absl::Status& status);

}  // namespace hpo
