// JSON of structs that list their fields (field.h), in two kinds: nlohmann::json is what is stored
// and exchanged, nlohmann::ordered_json what people and their programs are shown, every field in
// the list's order and null where it is not set or not known.
//
// A size `limit` is "limit_bytes" and a duration `every` is "every_seconds". Members that nobody
// lists are ignored.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/fields/field.h"
#include "common/base/fields/names.h"
#include "common/base/json_reader.h"
#include "nlohmann/json.hpp"

namespace hpo {

// Specialized for a type that is no object of its fields, or not only: Write, Read or both.
//   static nlohmann::json Write(const T& value);
//   static absl::StatusOr<T> Read(const nlohmann::json& json);
template <typename T>
struct JsonForm {};

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <typename T>
inline constexpr bool kIsMap = false;
template <typename Key, typename Value>
inline constexpr bool kIsMap<std::map<Key, Value>> = true;

// `T` without std::optional around it.
template <typename T>
struct WithoutOptional {
  using Type = T;
};
template <typename T>
struct WithoutOptional<std::optional<T>> {
  using Type = T;
};

template <typename Member>
std::string JsonKey(const Field& field) {
  using T = typename WithoutOptional<std::remove_const_t<Member>>::Type;
  const bool size = std::is_same_v<T, Bytes>;
  const bool time = std::is_same_v<T, absl::Duration>;
  return absl::StrCat(field.key, size ? "_bytes" : "", time ? "_seconds" : "");
}

// ---- Writing ---------------------------------------------------------------------------------

template <typename Json, typename T>
void AddFields(const T& value, Json& json);

template <typename Json = nlohmann::json, typename T>
Json ToJson(const T& value) {
  if constexpr (requires { JsonForm<T>::Write(value); }) {
    return Json(JsonForm<T>::Write(value));
  } else if constexpr (HasFields<const T>) {
    Json json = Json::object();
    AddFields(value, json);
    return json;
  } else if constexpr (kIsOptional<T>) {
    return value.has_value() ? ToJson<Json>(*value) : Json();
  } else if constexpr (kIsVector<T>) {
    Json json = Json::array();
    for (const auto& element : value) json.push_back(ToJson<Json>(element));
    return json;
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(NameIn(value));
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return value.count;
  } else if constexpr (std::is_same_v<T, absl::Duration>) {
    return absl::ToDoubleSeconds(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::isfinite(value) ? Json(value) : Json();
  } else if constexpr (kIsMap<T>) {
    Json json = Json::object();
    for (const auto& [key, element] : value) json[key] = ToJson<Json>(element);
    return json;
  } else {
    return Json(value);
  }
}

// Whether `member`, the field `key` of a T, is as T() has it.
template <typename T, typename Member>
bool IsDefault(const Field& field, const Member& member) {
  if constexpr (kIsOptional<Member>) {
    return !member.has_value();
  } else {
    bool same = false;
    const T standard;
    VisitFields(standard, [&](const Field& other, const auto& value) {
      if constexpr (std::is_same_v<decltype(value), const Member&>) {
        same = same || (std::string(other.key) == field.key && value == member);
      }
    });
    return same;
  }
}

// One field of `value`'s, as AddFields adds it.
template <typename T, typename Json, typename Member>
void AddField(const Field& field, const Member& member, Json& json) {
  if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
    bool known = true;
    if constexpr (std::is_same_v<Member, Bytes>) known = member.count > 0 || field.zero_is_known;
    json[JsonKey<Member>(field)] = known ? ToJson<Json>(member) : Json();
  } else if (field.presence != kIfSaid || !IsDefault<T>(field, member)) {
    json[JsonKey<Member>(field)] = ToJson<Json>(member);
  }
}

// Adds the fields to `json`, an object.
template <typename Json, typename T>
void AddFields(const T& value, Json& json) {
  VisitFields(value,
              [&](const Field& field, const auto& member) { AddField<T>(field, member, json); });
}

// ---- Reading ---------------------------------------------------------------------------------

template <typename T>
void ReadFields(JsonReader& reader, T& value);

// What JsonReader reads by itself.
template <typename T>
inline constexpr bool kIsPlain =
    std::is_arithmetic_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, Bytes> ||
    std::is_same_v<T, absl::Duration> || std::is_same_v<T, std::vector<std::string>> ||
    std::is_same_v<T, std::map<std::string, double>>;

//   InvalidArgument  a member missing, of another type or out of range; names it
template <typename T>
absl::StatusOr<T> FromJson(const nlohmann::json& json) {
  if constexpr (requires { JsonForm<T>::Read(json); }) {
    return JsonForm<T>::Read(json);
  } else if constexpr (kIsOptional<T>) {
    if (json.is_null()) return T();
    return FromJson<typename T::value_type>(json);
  } else if constexpr (kIsVector<T>) {
    using Element = typename T::value_type;
    return ArrayFromJson<Element>(json, FromJson<Element>);
  } else if constexpr (kIsMap<T>) {
    using Element = typename T::mapped_type;
    return MapFromJson<Element>(json, FromJson<Element>);
  } else if constexpr (std::is_enum_v<T>) {
    if (json.is_string()) {
      if (const auto value = ValueNamed<T>(json.get<std::string>())) return *value;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", ExpectedNames<T>(), ", got ", DescribeJson(json)));
  } else {
    T value;
    JsonReader reader(json, "");
    ReadFields(reader, value);
    HPO_RETURN_IF_ERROR(reader.status());
    return value;
  }
}

// The fields of the object that is being read; a member that is not there keeps its value.
template <typename T>
void ReadFields(JsonReader& reader, T& value) {
  VisitFields(value, [&](const Field& field, auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    const std::string key = JsonKey<Member>(field);
    const bool required = field.presence == kMandatory || field.presence == kRequired;
    if constexpr (kIsPlain<typename WithoutOptional<Member>::Type>) {
      required ? reader.Required(key.c_str(), member) : reader.Optional(key.c_str(), member);
    } else {
      required ? reader.RequiredWith(key.c_str(), member, FromJson<Member>)
               : reader.OptionalWith(key.c_str(), member, FromJson<Member>);
    }
  });
}

// One alternative of a variant, for NamedForm.
template <typename Variant, typename Alternative>
Variant ReadForm(JsonReader& reader) {
  Alternative alternative;
  ReadFields(reader, alternative);
  return alternative;
}

// The alternative that is held, by its name in `forms`, which are in the variant's order.
template <typename Json = nlohmann::json, typename Variant, size_t kCount>
Json FormToJson(const Variant& value, const char* key, const NamedForm<Variant> (&forms)[kCount]) {
  static_assert(std::variant_size_v<Variant> == kCount);
  Json json = {{key, forms[value.index()].name}};
  std::visit([&](const auto& held) { AddFields(held, json); }, value);
  return json;
}

}  // namespace hpo
