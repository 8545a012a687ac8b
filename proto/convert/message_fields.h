// Structs that list their fields (common/base/fields/field.h) as messages, through protobuf's
// reflection: a message's field has the name of the struct's, "limit_bytes" of a size `limit`, or
// what Field::wire says. Pure; safe from any thread.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/fields/json_fields.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/generated_enum_reflection.h"
#include "google/protobuf/message.h"
#include "proto/convert/params_proto.h"
#include "proto/convert/time_proto.h"

namespace hpo {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Specialized for a type that is no message of its fields, or not only: the message as Wire, and
// Write, Read or both.
template <typename T>
struct MessageForm {};
template <>
struct MessageForm<absl::Duration> {
  using Wire = google::protobuf::Duration;
  static Wire Write(absl::Duration value) { return ToProto(value); }
  static absl::StatusOr<absl::Duration> Read(const Wire& proto) { return FromProto(proto); }
};
template <>
struct MessageForm<absl::Time> {
  using Wire = google::protobuf::Timestamp;
  static Wire Write(absl::Time value) { return ToProto(value); }
  static absl::StatusOr<absl::Time> Read(const Wire& proto) { return FromProto(proto); }
};
template <>
struct MessageForm<ParamValue> {
  using Wire = v1::Value;
  static Wire Write(const ParamValue& value) { return ToProto(value); }
  static absl::StatusOr<ParamValue> Read(const Wire& proto) { return FromProto(proto); }
};

// Specialized for a type that is no field of a message: what it is part of converts it by itself.
template <typename T>
inline constexpr bool kIsSent = true;

template <typename T>
concept HasMessage = requires {
  typename MessageForm<T>::Wire;
};

// ---- Enumerators -------------------------------------------------------------------------------

// The number of DIRECTION_MAXIMIZE for "maximize"; dies where `type` has none.
int NumberNamed(const EnumDescriptor& type, absl::string_view name);

//   InvalidArgument  unspecified, or from a newer version: "expected a precision, got 9"
template <typename Enum>
absl::StatusOr<Enum> EnumNumbered(const EnumDescriptor& type, int number) {
  for (size_t i = 0; i < std::size(NamesOf<Enum>::kNames); ++i) {
    if (NumberNamed(type, NamesOf<Enum>::kNames[i]) == number) return static_cast<Enum>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", NamesOf<Enum>::kMeans, ", got ", number));
}

template <typename Wire, typename Enum>
Wire ToWire(Enum value) {
  return static_cast<Wire>(
      NumberNamed(*google::protobuf::GetEnumDescriptor<Wire>(), NameIn(value)));
}

//   InvalidArgument  as EnumNumbered
template <typename Enum, typename Wire>
absl::StatusOr<Enum> FromWire(Wire value) {
  return EnumNumbered<Enum>(*google::protobuf::GetEnumDescriptor<Wire>(), static_cast<int>(value));
}

// ---- Single fields -----------------------------------------------------------------------------

// Dies where `message` has no such field: a list of fields and its message are one.
const FieldDescriptor& FieldNamed(const Message& message, const std::string& name);

void SetScalar(bool value, const FieldDescriptor& field, Message& message);
void SetScalar(int32_t value, const FieldDescriptor& field, Message& message);
void SetScalar(int64_t value, const FieldDescriptor& field, Message& message);
void SetScalar(uint64_t value, const FieldDescriptor& field, Message& message);
void SetScalar(double value, const FieldDescriptor& field, Message& message);
void SetScalar(const std::string& value, const FieldDescriptor& field, Message& message);

void GetScalar(const Message& message, const FieldDescriptor& field, bool& value);
void GetScalar(const Message& message, const FieldDescriptor& field, int32_t& value);
void GetScalar(const Message& message, const FieldDescriptor& field, int64_t& value);
void GetScalar(const Message& message, const FieldDescriptor& field, uint64_t& value);
void GetScalar(const Message& message, const FieldDescriptor& field, double& value);
void GetScalar(const Message& message, const FieldDescriptor& field, std::string& value);

// What of a value travels as one number: a size's bytes, a trial's number.
template <typename T>
auto& ScalarOf(T& value) {
  if constexpr (requires { value.count; }) {
    return value.count;
  } else if constexpr (requires { value.value; }) {
    return value.value;
  } else {
    return value;
  }
}

template <typename Member>
std::string WireName(const Field& field) {
  if (field.wire != nullptr) return field.wire;
  using T = typename WithoutOptional<std::remove_const_t<Member>>::Type;
  return absl::StrCat(field.key, std::is_same_v<T, Bytes> ? "_bytes" : "");
}

// ---- Writing -----------------------------------------------------------------------------------

template <typename T>
void WriteMessage(const T& value, Message& message);

// One of a repeated field.
template <typename T>
void AddElement(const T& value, const FieldDescriptor& field, Message& message) {
  const google::protobuf::Reflection& out = *message.GetReflection();
  if constexpr (std::is_same_v<T, std::string>) {
    out.AddString(&message, &field, value);
  } else if constexpr (std::is_same_v<T, TrialNumber>) {
    out.AddInt64(&message, &field, value.value);
  } else if constexpr (std::is_enum_v<T>) {
    out.AddEnumValue(&message, &field, NumberNamed(*field.enum_type(), NameIn(value)));
  } else {
    WriteMessage(value, *out.AddMessage(&message, &field));
  }
}

template <typename T>
void WriteField(const T& value, const FieldDescriptor& field, Message& message) {
  const google::protobuf::Reflection& out = *message.GetReflection();
  if constexpr (kIsOptional<T>) {
    if (value.has_value()) WriteField(*value, field, message);
  } else if constexpr (kIsVector<T>) {
    for (const auto& element : value) AddElement(element, field, message);
  } else if constexpr (std::is_same_v<T, absl::Time>) {
    if (value != absl::InfinitePast()) WriteMessage(value, *out.MutableMessage(&message, &field));
  } else if constexpr (HasMessage<T> || HasFields<const T>) {
    WriteMessage(value, *out.MutableMessage(&message, &field));
  } else if constexpr (kIsMap<T>) {
    // A map, or a list of messages of a key and a value.
    for (const auto& [key, element] : value) {
      Message& entry = *out.AddMessage(&message, &field);
      WriteField(key, *field.message_type()->field(0), entry);
      WriteField(element, *field.message_type()->field(1), entry);
    }
  } else if constexpr (std::is_enum_v<T>) {
    if (field.enum_type() == nullptr) {
      SetScalar(std::string(NameIn(value)), field, message);
    } else {
      out.SetEnumValue(&message, &field, NumberNamed(*field.enum_type(), NameIn(value)));
    }
  } else {
    SetScalar(ScalarOf(value), field, message);
  }
}

template <typename T>
void WriteFields(const T& value, Message& message) {
  VisitFields(value, [&](const Field& field, const auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (kIsSent<Member>) {
      if (field.wire == kNotSent) return;
      WriteField(member, FieldNamed(message, WireName<Member>(field)), message);
    }
  });
}

template <typename T>
void WriteMessage(const T& value, Message& message) {
  if constexpr (requires { MessageForm<T>::Write(value); }) {
    static_cast<typename MessageForm<T>::Wire&>(message) = MessageForm<T>::Write(value);
  } else {
    WriteFields(value, message);
  }
}

template <typename Wire, typename T>
Wire ToMessage(const T& value) {
  Wire message;
  WriteFields(value, message);
  return message;
}

// ---- Reading -----------------------------------------------------------------------------------

template <typename T>
absl::Status ReadMessage(const Message& message, T& value);

template <typename T>
absl::Status ReadEnum(const Message& message, const FieldDescriptor& field, bool required,
                      T& value) {
  if (field.enum_type() == nullptr) {
    std::string name;
    GetScalar(message, field, name);
    const std::optional<T> named = ValueNamed<T>(name);
    if (!named.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("expected ", NamesOf<T>::kMeans, ": ",
                                                     ExpectedNames<T>(), ", got '", name, "'"));
    }
    value = *named;
    return absl::OkStatus();
  }
  const int number = message.GetReflection()->GetEnumValue(message, &field);
  if (number == 0 && !required) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(value, EnumNumbered<T>(*field.enum_type(), number));
  return absl::OkStatus();
}

// Element `i` of a repeated field.
template <typename T>
absl::Status ReadElement(const Message& message, const FieldDescriptor& field, int i, T& value) {
  const google::protobuf::Reflection& in = *message.GetReflection();
  if constexpr (std::is_same_v<T, std::string>) {
    value = in.GetRepeatedString(message, &field, i);
  } else if constexpr (std::is_same_v<T, TrialNumber>) {
    value.value = in.GetRepeatedInt64(message, &field, i);
  } else if constexpr (std::is_enum_v<T>) {
    const int number = in.GetRepeatedEnumValue(message, &field, i);
    HPO_ASSIGN_OR_RETURN(value, EnumNumbered<T>(*field.enum_type(), number));
  } else {
    return ReadMessage(in.GetRepeatedMessage(message, &field, i), value);
  }
  return absl::OkStatus();
}

// A field that is not said keeps its value; of a `required` one what its message's zero says.
template <typename T>
absl::Status ReadField(const Message& message, const FieldDescriptor& field, bool required,
                       T& value) {
  const google::protobuf::Reflection& in = *message.GetReflection();
  const bool optional = !required || kIsOptional<T> || std::is_same_v<T, absl::Time>;
  if (optional && field.has_presence() && !in.HasField(message, &field)) return absl::OkStatus();
  const int size = field.is_repeated() ? in.FieldSize(message, &field) : 0;
  if constexpr (kIsOptional<T>) {
    return ReadField(message, field, required, value.emplace());
  } else if constexpr (kIsVector<T>) {
    for (int i = 0; i < size; ++i) {
      HPO_RETURN_IF_ERROR(ReadElement(message, field, i, value.emplace_back()));
    }
  } else if constexpr (HasMessage<T> || HasFields<T>) {
    return ReadMessage(in.GetMessage(message, &field), value);
  } else if constexpr (kIsMap<T>) {
    for (int i = 0; i < size; ++i) {
      const Message& entry = in.GetRepeatedMessage(message, &field, i);
      typename T::key_type key;
      GetScalar(entry, *field.message_type()->field(0), key);
      const absl::Status status =
          ReadField(entry, *field.message_type()->field(1), /*required=*/true, value[key]);
      // Of other maps the values themselves say where they are.
      if (std::is_same_v<T, ParamMap>) HPO_RETURN_IF_ERROR(Annotate(status, "parameter " + key));
      HPO_RETURN_IF_ERROR(status);
    }
  } else if constexpr (std::is_enum_v<T>) {
    return ReadEnum(message, field, required, value);
  } else {
    GetScalar(message, field, ScalarOf(value));
  }
  return absl::OkStatus();
}

//   InvalidArgument  a value that `value` cannot have
template <typename T>
absl::Status ReadFields(const Message& message, T& value) {
  absl::Status status;
  VisitFields(value, [&](const Field& field, auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    if constexpr (kIsSent<Member>) {
      if (field.wire == kNotSent || !status.ok()) return;
      const bool required = field.presence == kMandatory || field.presence == kRequired;
      status = ReadField(message, FieldNamed(message, WireName<Member>(field)), required, member);
    }
  });
  return status;
}

template <typename T>
absl::Status ReadMessage(const Message& message, T& value) {
  if constexpr (requires { &MessageForm<T>::Read; }) {
    using Wire = typename MessageForm<T>::Wire;
    HPO_ASSIGN_OR_RETURN(value, MessageForm<T>::Read(static_cast<const Wire&>(message)));
    return absl::OkStatus();
  } else {
    return ReadFields(message, value);
  }
}

//   InvalidArgument  as ReadFields
template <typename T>
absl::StatusOr<T> FromMessage(const Message& message) {
  T value;
  HPO_RETURN_IF_ERROR(ReadFields(message, value));
  return value;
}

// ---- Variants ----------------------------------------------------------------------------------

// A variant as a `oneof`, whose fields have the names of its alternatives, in their order.
template <typename Variant, size_t kCount>
void WriteOneOf(const Variant& value, const char* const (&names)[kCount], Message& message) {
  static_assert(std::variant_size_v<Variant> == kCount);
  const FieldDescriptor& field = FieldNamed(message, names[value.index()]);
  std::visit([&](const auto& held) { WriteField(held, field, message); }, value);
}

//   InvalidArgument  none is set: "domain: expected float_domain or int_domain, got none of them"
template <typename Variant, size_t kNext = 0, size_t kCount>
absl::StatusOr<Variant> ReadOneOf(const Message& message, absl::string_view what,
                                  const char* const (&names)[kCount]) {
  if constexpr (kNext < kCount) {
    const FieldDescriptor& field = FieldNamed(message, names[kNext]);
    if (!message.GetReflection()->HasField(message, &field)) {
      return ReadOneOf<Variant, kNext + 1>(message, what, names);
    }
    std::variant_alternative_t<kNext, Variant> held;
    HPO_RETURN_IF_ERROR(ReadField(message, field, /*required=*/true, held));
    return held;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": expected ", OneOf(names), ", got none of them"));
  }
}

}  // namespace hpo
