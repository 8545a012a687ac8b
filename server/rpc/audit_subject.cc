#include "server/rpc/audit_subject.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace hpo::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kMostValues = 20;  // of a list; the log cuts what is long

bool IsPlain(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("-_./:@+").find(c) != absl::string_view::npos;
  });
}

std::string Escaped(const std::string& text) {
  return IsPlain(text) ? text : absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

std::string ListOf(const Message& request, const FieldDescriptor& field) {
  const auto& reflection = *request.GetReflection();
  const int size = reflection.FieldSize(request, &field);
  std::vector<std::string> values;
  for (int i = 0; i < std::min(size, kMostValues); ++i) {
    values.push_back(Escaped(reflection.GetRepeatedString(request, &field, i)));
  }
  if (size > kMostValues) values.push_back(absl::StrCat("and ", size - kMostValues, " more"));
  return absl::StrJoin(values, ",");
}

// Empty: the request does not have it.
std::string ValueOf(const Message& request, const FieldDescriptor& field) {
  const auto& reflection = *request.GetReflection();
  if (field.is_repeated()) {
    return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING ? ListOf(request, field) : "";
  }
  if (field.has_presence() && !reflection.HasField(request, &field)) return "";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = reflection.GetString(request, &field);
      return text.empty() ? "" : Escaped(text);
    }
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(reflection.GetInt64(request, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(request, &field) ? "true" : "";
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnum(request, &field)->number() == 0
                 ? ""
                 : reflection.GetEnum(request, &field)->name();
    default:
      return "";
  }
}

}  // namespace

std::string SubjectOf(const Message& request) {
  std::vector<std::string> parts;
  for (const char* name : {"name", "names", "all", "study", "number", "study_name", "study_id",
                           "trial_id", "key", "worker", "order", "role"}) {
    const FieldDescriptor* const field = request.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) continue;
    if (const std::string value = ValueOf(request, *field); !value.empty()) {
      parts.push_back(absl::StrCat(name, "=", value));
    }
  }
  return absl::StrJoin(parts, " ");
}

std::string SubjectOfAnswer(const Message& answer) {
  const FieldDescriptor* const study = answer.GetDescriptor()->FindFieldByName("study");
  if (study == nullptr || study->message_type() == nullptr || study->is_repeated()) return "";
  const Message& message = answer.GetReflection()->GetMessage(answer, study);
  const FieldDescriptor* const name = message.GetDescriptor()->FindFieldByName("name");
  const std::string value = name == nullptr ? "" : ValueOf(message, *name);
  return value.empty() ? "" : absl::StrCat("name=", value);
}

}  // namespace hpo::server
