#include "proto/convert/params_proto.h"

namespace hpo {

v1::Value ToProto(const ParamValue& value) {
  v1::Value proto;
  if (const bool* flag = std::get_if<bool>(&value)) {
    proto.set_bool_value(*flag);
  } else if (const int64_t* integer = std::get_if<int64_t>(&value)) {
    proto.set_int_value(*integer);
  } else if (const double* number = std::get_if<double>(&value)) {
    proto.set_double_value(*number);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    proto.set_string_value(*text);
  } else {
    proto.set_null_value(google::protobuf::NULL_VALUE);
  }
  return proto;
}

absl::StatusOr<ParamValue> FromProto(const v1::Value& proto) {
  switch (proto.kind_case()) {
    case v1::Value::kBoolValue:
      return ParamValue(proto.bool_value());
    case v1::Value::kIntValue:
      return ParamValue(static_cast<int64_t>(proto.int_value()));
    case v1::Value::kDoubleValue:
      return ParamValue(proto.double_value());
    case v1::Value::kStringValue:
      return ParamValue(proto.string_value());
    case v1::Value::kNullValue:
      return ParamValue(Null());
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "expected bool_value, int_value, double_value, string_value or null_value, got an empty "
      "value");
}

google::protobuf::Map<std::string, v1::Value> ToProto(const ParamMap& params) {
  google::protobuf::Map<std::string, v1::Value> proto;
  for (const auto& [name, value] : params) proto[name] = ToProto(value);
  return proto;
}

}  // namespace hpo
