// Parameters between their value types (common/space/params.h) and the wire.
//
// proto/convert is shared by the server and every client, so that both ends agree by construction.
// ToProto is total. FromProto rejects what has no value: InvalidArgument names the field, what was
// expected and what came. Pure; safe from any thread.
#pragma once

#include <google/protobuf/map.h>

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "common/space/params.h"
#include "hpo/v1/trial.pb.h"

namespace hpo {

v1::Value ToProto(const ParamValue& value);
absl::StatusOr<ParamValue> FromProto(const v1::Value& proto);

// Texts by key, such as attributes.
using TextMap = google::protobuf::Map<std::string, std::string>;
inline TextMap ToProto(const std::map<std::string, std::string>& texts) {
  return TextMap(texts.begin(), texts.end());
}
inline std::map<std::string, std::string> FromProto(const TextMap& texts) {
  return {texts.begin(), texts.end()};
}

google::protobuf::Map<std::string, v1::Value> ToProto(const ParamMap& params);

}  // namespace hpo
