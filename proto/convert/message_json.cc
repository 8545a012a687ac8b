// Tested by tests/proto/convert/message_json_test.cc.
#include "proto/convert/message_json.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"

namespace hpo {

absl::StatusOr<std::string> MessageToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) {
    return absl::InternalError(absl::StrCat(message.GetTypeName(), ": cannot be written as JSON"));
  }
  return json;
}

}  // namespace hpo
