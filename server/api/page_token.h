// Where a listing goes on. Opaque to callers: base64 of the last number and a mark of the filter,
// so that a token of one listing is refused by another.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/protocol/study_exchange.h"

namespace hpo::server {

std::string MakePageToken(absl::string_view study, const TrialFilter& filter, TrialNumber last);

//   InvalidArgument  not a token, or one of another study or filter
absl::StatusOr<TrialNumber> ReadPageToken(absl::string_view study, const TrialFilter& filter,
                                          absl::string_view token);

}  // namespace hpo::server
