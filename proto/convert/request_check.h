// What comes in is checked here before anything looks at it, field by field of every message, so
// that whatever is accepted can be stored and read again. A field that no rule names is held to the
// rule of its type: a new field is checked from the day it is added.
#pragma once

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace hpo {

// Whole numbers lie in [0, kNumberLimit], real ones are finite, names, texts and lists are no
// longer than common/base/limits.h says, enumerators are known, times lie in the range of their
// formats; the exceptions stand in request_check.cc, among them texts that are not refused but
// shortened: what an attempt says of its end.
//   InvalidArgument  "memory.live_peak_bytes: expected 0 to 9007199254740992, got -1"
absl::Status CheckRequest(const google::protobuf::Message& request);

}  // namespace hpo
