// Messages as JSON, as the page and its exports have them (web/API.md). Pure; thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace google::protobuf {
class Message;
}

namespace hpo {

// protobuf's JSON with the fields' names of the .proto files; fields of default values are left
// out.
//   Internal  the message cannot be written as JSON
absl::StatusOr<std::string> MessageToJson(const google::protobuf::Message& message);

}  // namespace hpo
