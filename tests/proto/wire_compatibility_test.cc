// What was once on the wire keeps its meaning: programs of different versions meet.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "hpo/v1/admin.pb.h"
#include "hpo/v1/analysis.pb.h"
#include "hpo/v1/fleet.pb.h"
#include "hpo/v1/study.pb.h"
#include "hpo/v1/trial.pb.h"
#include "hpo/v1/worker.pb.h"
#include "tests/test_paths.h"

namespace hpo {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::ServiceDescriptor;

std::string TypeOf(const FieldDescriptor& field) {
  if (field.message_type() != nullptr) return field.message_type()->full_name();
  if (field.enum_type() != nullptr) return field.enum_type()->full_name();
  return field.type_name();
}

void AddEnum(const EnumDescriptor& type, std::vector<std::string>& lines) {
  for (int i = 0; i < type.value_count(); ++i) {
    lines.push_back(
        absl::StrCat(type.full_name(), " ", type.value(i)->number(), " ", type.value(i)->name()));
  }
}

void AddMessage(const Descriptor& type, std::vector<std::string>& lines) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    lines.push_back(absl::StrCat(type.full_name(), " ", field.number(), " ", field.name(), " ",
                                 field.is_repeated() ? "repeated " : "", TypeOf(field)));
  }
  for (int i = 0; i < type.nested_type_count(); ++i) AddMessage(*type.nested_type(i), lines);
  for (int i = 0; i < type.enum_type_count(); ++i) AddEnum(*type.enum_type(i), lines);
}

void AddService(const ServiceDescriptor& service, std::vector<std::string>& lines) {
  for (int i = 0; i < service.method_count(); ++i) {
    const auto& method = *service.method(i);
    lines.push_back(absl::StrCat(
        method.full_name(), " ", method.client_streaming() ? "stream " : "",
        method.input_type()->full_name(), " -> ", method.server_streaming() ? "stream " : "",
        method.output_type()->full_name()));
  }
}

std::vector<std::string> Present() {
  std::vector<std::string> lines;
  for (const FileDescriptor* file :
       {v1::GetImportanceRequest::descriptor()->file(), v1::GetServerRequest::descriptor()->file(),
        v1::ListWorkersRequest::descriptor()->file(), v1::Study::descriptor()->file(),
        v1::Trial::descriptor()->file(), v1::Assignment::descriptor()->file()}) {
    for (int i = 0; i < file->message_type_count(); ++i) AddMessage(*file->message_type(i), lines);
    for (int i = 0; i < file->enum_type_count(); ++i) AddEnum(*file->enum_type(i), lines);
    for (int i = 0; i < file->service_count(); ++i) AddService(*file->service(i), lines);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// The file has what a release has had; lines are added to it, with what this test prints, and none
// is changed or taken away.
TEST(WireCompatibility, NothingThatWasOnTheWireHasChanged) {
  const auto golden = ReadFile(SourcePath("tests/golden/wire.txt"));
  ASSERT_TRUE(golden.ok()) << golden.status();
  const std::vector<std::string> had = absl::StrSplit(*golden, '\n', absl::SkipEmpty());
  EXPECT_GT(had.size(), 300u);
  const std::vector<std::string> present = Present();
  for (const std::string& line : had) {
    EXPECT_TRUE(std::binary_search(present.begin(), present.end(), line))
        << "was on the wire and is no more: " << line;
  }
  std::vector<std::string> added;
  std::copy_if(
      present.begin(), present.end(), std::back_inserter(added),
      [&](const std::string& line) { return !testing::Value(had, testing::Contains(line)); });
  EXPECT_TRUE(added.empty()) << "to be added to tests/golden/wire.txt:\n"
                             << absl::StrJoin(added, "\n");
}

}  // namespace
}  // namespace hpo
