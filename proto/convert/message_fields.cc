#include "proto/convert/message_fields.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace hpo {

int NumberNamed(const EnumDescriptor& type, absl::string_view name) {
  const absl::string_view prefix = absl::StripSuffix(type.value(0)->name(), "UNSPECIFIED");
  const auto* const value = type.FindValueByName(absl::StrCat(prefix, absl::AsciiStrToUpper(name)));
  HPO_CHECK(value != nullptr);
  return value->number();
}

const FieldDescriptor& FieldNamed(const Message& message, const std::string& name) {
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(name);
  HPO_CHECK(field != nullptr);
  return *field;
}

void SetScalar(bool value, const FieldDescriptor& field, Message& message) {
  message.GetReflection()->SetBool(&message, &field, value);
}
void SetScalar(int32_t value, const FieldDescriptor& field, Message& message) {
  message.GetReflection()->SetInt32(&message, &field, value);
}
void SetScalar(int64_t value, const FieldDescriptor& field, Message& message) {
  message.GetReflection()->SetInt64(&message, &field, value);
}
void SetScalar(uint64_t value, const FieldDescriptor& field, Message& message) {
  message.GetReflection()->SetUInt64(&message, &field, value);
}
void SetScalar(double value, const FieldDescriptor& field, Message& message) {
  message.GetReflection()->SetDouble(&message, &field, value);
}
void SetScalar(const std::string& value, const FieldDescriptor& field, Message& message) {
  message.GetReflection()->SetString(&message, &field, value);
}

void GetScalar(const Message& message, const FieldDescriptor& field, bool& value) {
  value = message.GetReflection()->GetBool(message, &field);
}
void GetScalar(const Message& message, const FieldDescriptor& field, int32_t& value) {
  value = message.GetReflection()->GetInt32(message, &field);
}
void GetScalar(const Message& message, const FieldDescriptor& field, int64_t& value) {
  value = message.GetReflection()->GetInt64(message, &field);
}
void GetScalar(const Message& message, const FieldDescriptor& field, uint64_t& value) {
  value = message.GetReflection()->GetUInt64(message, &field);
}
void GetScalar(const Message& message, const FieldDescriptor& field, double& value) {
  value = message.GetReflection()->GetDouble(message, &field);
}
void GetScalar(const Message& message, const FieldDescriptor& field, std::string& value) {
  value = message.GetReflection()->GetString(message, &field);
}

}  // namespace hpo
