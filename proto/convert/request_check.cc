#include "proto/convert/request_check.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "hpo/v1/analysis.pb.h"
#include "optuna/storage.pb.h"

namespace hpo {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

struct FieldLimit {
  const char* field;
  const Limit* limit;
};

// Texts that are no names.
constexpr FieldLimit kTexts[] = {
    {"hpo.v1.CreateStudyRequest.yaml", &kStudyFileLimit},
    {"hpo.v1.CreateStudyRequest.origin", &kTextLimit},
    {"hpo.v1.EditStudyRequest.yaml", &kStudyFileLimit},
    {"hpo.v1.EditStudyRequest.origin", &kTextLimit},
    {"hpo.v1.RestoreStudyRequest.data", &kStudyFileLimit},  // a piece of an archive
    {"hpo.v1.Value.string_value", &kTextLimit},
    {"hpo.v1.Completed.model_path", &kTextLimit},
    {"hpo.v1.ImportedTrial.origin", &kTextLimit},
    {"hpo.v1.RegisterWorkerRequest.trainer", &kTextLimit},
    {"hpo.v1.RegisterWorkerRequest.torch_build", &kTextLimit},
    {"hpo.v1.RegisterWorkerRequest.LeftOutEntry.key", &kTextLimit},
    {"hpo.v1.RegisterWorkerRequest.LeftOutEntry.value", &kTextLimit},
    {"hpo.v1.Model.name", &kTextLimit},
    {"hpo.v1.DataSet.name", &kTextLimit},
    {"hpo.v1.DataSet.labels", &kTextLimit},
    {"hpo.v1.DeviceProfile.driver", &kTextLimit},
    {"hpo.v1.DeviceProfile.torch_build", &kTextLimit},
    {"hpo.v1.DeviceProfile.capability", &kTextLimit},
    {"hpo.v1.DeviceProfile.attention", &kTextLimit},
    {"hpo.v1.PreflightNeed.capability", &kTextLimit},
    {"hpo.v1.DeviceProfile.allocator", &kTextLimit},
    {"hpo.v1.StopTrialRequest.reason", &kTextLimit},
    {"hpo.v1.CancelTrialRequest.reason", &kTextLimit},
    {"optuna.SetStudyUserAttributeRequest.value", &kOptunaJsonLimit},
    {"optuna.SetStudySystemAttributeRequest.value", &kOptunaJsonLimit},
    {"optuna.SetTrialUserAttributeRequest.value", &kOptunaJsonLimit},
    {"optuna.SetTrialSystemAttributeRequest.value", &kOptunaJsonLimit},
    {"optuna.SetTrialParameterRequest.distribution", &kOptunaJsonLimit},
    {"optuna.Trial.DistributionsEntry.value", &kOptunaJsonLimit},
    {"optuna.Trial.UserAttributesEntry.value", &kOptunaJsonLimit},
    {"optuna.Trial.SystemAttributesEntry.value", &kOptunaJsonLimit},
    {"hpo.v1.AnnotateRequest.note", &kTextLimit},
    {"hpo.v1.AnnotateRequest.AttributesEntry.value", &kTextLimit},
    {"hpo.v1.ReportMeasurementsRequest.AttributesEntry.value", &kTextLimit},
    {"hpo.v1.FinishTrialRequest.AttributesEntry.value", &kTextLimit},
    {"hpo.v1.ImportedTrial.AttributesEntry.value", &kTextLimit},
};

// Texts that are shortened where they are converted: what says how a trial ended is not refused.
constexpr const char* kShortened[] = {
    "hpo.v1.OutOfMemory.error_message",
    "hpo.v1.OutOfMemory.error_traceback",
    "hpo.v1.OutOfMemory.phase",
    "hpo.v1.Failed.message",
    "hpo.v1.Cancelled.reason",
    "hpo.v1.StoppedByPruner.pruner",
    "hpo.v1.ReleaseTrialRequest.note",
    "hpo.v1.ReleaseTrialRequest.log_tail",
    "hpo.v1.FinishTrialRequest.log_tail",
    "hpo.v1.HeartbeatRequest.Lease.log_tail",
    "hpo.v1.HeartbeatRequest.notice",
    "hpo.v1.ReportPreflightRequest.message",
};

// Lists and maps. Those that are not named here hold at most kFactLimit.
constexpr FieldLimit kLists[] = {
    {"hpo.v1.Completed.metrics", &kMetricLimit},
    {"hpo.v1.StoppedByPruner.metrics", &kMetricLimit},
    {"hpo.v1.Measurement.metrics", &kMetricLimit},
    {"hpo.v1.OutOfMemory.oom_config", &kParameterLimit},
    {"hpo.v1.EnqueueTrialRequest.params", &kParameterLimit},
    {"hpo.v1.EstimateMemoryRequest.params", &kParameterLimit},
    {"hpo.v1.GetMemoryFrontierRequest.params", &kParameterLimit},
    {"hpo.v1.GetMemoryFrontierRequest.capacities", &kCapacityLimit},
    {"hpo.v1.GetMemoryFitRequest.capacities", &kCapacityLimit},
    {"hpo.v1.GetCurvesRequest.numbers", &kCurveLimit},
    {"hpo.v1.GetCurvesRequest.where", &kFilterLimit},
    {"hpo.v1.ImportedTrial.params", &kParameterLimit},
    {"hpo.v1.ImportedTrial.measurements", &kMeasurementLimit},
    {"hpo.v1.ReportMeasurementsRequest.measurements", &kMeasurementLimit},
    {"hpo.v1.FinishTrialRequest.measurements", &kMeasurementLimit},
    {"hpo.v1.ReportMeasurementsRequest.memory_records", &kMemoryRecordLimit},
    {"hpo.v1.FinishTrialRequest.memory_records", &kMemoryRecordLimit},
    {"hpo.v1.UpdateStudyRequest.added_choices", &kParameterLimit},
    {"hpo.v1.EditStudyRequest.ranges", &kParameterLimit},
    {"hpo.v1.CategoricalDomain.choices", &kChoiceLimit},
    {"hpo.v1.AddedChoices.choices", &kChoiceLimit},
    {"hpo.v1.ImportTrialsRequest.trials", &kImportLimit},
    {"hpo.v1.ListTrialsRequest.states", &kFilterLimit},
    {"hpo.v1.ListTrialsRequest.prune_reasons", &kFilterLimit},
    {"hpo.v1.QueryTrialsRequest.where", &kFilterLimit},
    {"hpo.v1.HeartbeatRequest.leases", &kLeaseLimit},
    {"hpo.v1.DataSet.labels", &kLabelLimit},
    {"hpo.v1.LengthHistogram.rows_by_length", &kLengthLimit},
    {"optuna.Trial.intermediate_values", &kMeasurementLimit},
    {"optuna.Trial.user_attributes", &kOptunaAttributeLimit},
    {"optuna.Trial.system_attributes", &kOptunaAttributeLimit},
    {"optuna.GetTrialsRequest.included_trial_ids", &kOptunaUnfinishedLimit},
    {"hpo.v1.AnnotateRequest.add_tags", &kAttributeLimit},
    {"hpo.v1.AnnotateRequest.remove_tags", &kAttributeLimit},
    {"hpo.v1.AnnotateRequest.attributes", &kAttributeLimit},
    {"hpo.v1.ReportMeasurementsRequest.attributes", &kAttributeLimit},
    {"hpo.v1.FinishTrialRequest.attributes", &kAttributeLimit},
    {"hpo.v1.ImportedTrial.attributes", &kAttributeLimit},
    {"hpo.v1.RetryTrialsRequest.numbers", &kPageLimit},
};

struct FieldRange {
  const char* field;
  int64_t low;
  int64_t high;
};

constexpr FieldRange kRanges[] = {
    // What a parameter may be, its domain says.
    {"hpo.v1.Value.int_value", std::numeric_limits<int64_t>::min(),
     std::numeric_limits<int64_t>::max()},
    {"hpo.v1.IntDomain.low", -kNumberLimit.most, kNumberLimit.most},
    {"hpo.v1.IntDomain.high", -kNumberLimit.most, kNumberLimit.most},
    {"hpo.v1.WatchStudyRequest.after_sequence", -1, kNumberLimit.most},
    {"hpo.v1.ModelShape.pad_token_id", -1, kNumberLimit.most},
    {"hpo.v1.ListStudiesRequest.page_size", 0, kPageLimit.most},
    {"hpo.v1.ListTrialsRequest.page_size", 0, kPageLimit.most},
    {"hpo.v1.ListServedStudiesRequest.page_size", 0, kPageLimit.most},
    {"hpo.v1.QueryTrialsRequest.page_size", 0, kTableLimit.most},
    {"hpo.v1.GetHistoryRequest.points", 0, kHistoryLimit.most},
    {"hpo.v1.GetCurvesRequest.count", 0, kCurveLimit.most},
    {"hpo.v1.GetCurvesRequest.points", 0, kCurvePointLimit.most},
    {"hpo.v1.GetTimelineRequest.count", 0, kTimelineLimit.most},
    {"hpo.v1.GetMemoryFrontierRequest.points", 0, kFrontierLimit.most},
    {"hpo.v1.ListBestTrialsRequest.count", 0, kPageLimit.most},
};

// Not finite: what a diverged training reports.
constexpr const char* kAnyReal[] = {
    "hpo.v1.Completed.MetricsEntry.value",
    "hpo.v1.StoppedByPruner.MetricsEntry.value",
    "hpo.v1.Measurement.MetricsEntry.value",
    "optuna.SetTrialIntermediateValueRequest.intermediate_value",
    "optuna.SetTrialStateValuesRequest.values",
    "optuna.Trial.values",
    "optuna.Trial.IntermediateValuesEntry.value",
};

// google/protobuf/duration.proto and timestamp.proto: 10,000 years; 0001-01-01 to 9999-12-31.
constexpr int64_t kLongestDuration = 315'576'000'000;
constexpr int64_t kFirstSecond = -62'135'596'800;
constexpr int64_t kLastSecond = 253'402'300'799;
constexpr int32_t kMostNanos = 999'999'999;

struct Rules {
  std::map<std::string, const Limit*> texts;
  std::map<std::string, const Limit*> lists;
  std::map<std::string, std::pair<int64_t, int64_t>> ranges;
  std::map<std::string, bool> any_real;
  std::map<std::string, bool> shortened;
};

// A rule for a field that there is not would hold for nothing.
template <typename Value>
void CheckAreFields(const std::map<std::string, Value>& rules) {
  const auto* const pool = google::protobuf::DescriptorPool::generated_pool();
  for (const auto& [name, rule] : rules) HPO_CHECK(pool->FindFieldByName(name) != nullptr);
}

void CheckNames(const Rules& rules) {
  // Its messages are in every program that checks requests, also where nothing else uses them.
  google::protobuf::LinkMessageReflection<v1::GetCurvesRequest>();
  CheckAreFields(rules.texts);
  CheckAreFields(rules.lists);
  CheckAreFields(rules.ranges);
  CheckAreFields(rules.any_real);
  CheckAreFields(rules.shortened);
}

const Rules& TheRules() {
  static const Rules* const kRules = [] {
    auto* rules = new Rules;
    for (const FieldLimit& rule : kTexts) rules->texts[rule.field] = rule.limit;
    for (const FieldLimit& rule : kLists) rules->lists[rule.field] = rule.limit;
    for (const FieldRange& rule : kRanges) rules->ranges[rule.field] = {rule.low, rule.high};
    for (const char* field : kAnyReal) rules->any_real[field] = true;
    for (const char* field : kShortened) rules->shortened[field] = true;
    CheckNames(*rules);
    return rules;
  }();
  return *kRules;
}

template <typename Value>
Value FindOr(const std::map<std::string, Value>& rules, const FieldDescriptor& field,
             Value otherwise) {
  const auto found = rules.find(field.full_name());
  return found == rules.end() ? otherwise : found->second;
}

absl::Status Expected(absl::string_view expected, absl::string_view got) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", expected, ", got ", got));
}

absl::Status CheckRange(int64_t low, int64_t high, int64_t value) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Expected(absl::StrCat(low, " to ", high), absl::StrCat(value));
}

// Names the file, so that a program that knows the rules has its descriptors, too.
bool IsOptunas(const FieldDescriptor& field) {
  return field.file() == optuna::Trial::descriptor()->file();
}

absl::Status CheckNumber(const FieldDescriptor& field, int64_t value) {
  // Ids, numbers and steps that are looked up or kept as they are; nothing is reckoned with them.
  if (IsOptunas(field)) return absl::OkStatus();
  const auto [low, high] =
      FindOr(TheRules().ranges, field, std::pair<int64_t, int64_t>(0, kNumberLimit.most));
  return CheckRange(low, high, value);
}

absl::Status CheckReal(const FieldDescriptor& field, double value) {
  if (std::isfinite(value) || FindOr(TheRules().any_real, field, false)) return absl::OkStatus();
  return Expected("a finite number", absl::StrCat(value));
}

absl::Status CheckText(const FieldDescriptor& field, const std::string& text) {
  if (FindOr(TheRules().shortened, field, false)) return absl::OkStatus();
  const Limit& limit =
      *FindOr(TheRules().texts, field, IsOptunas(field) ? &kOptunaNameLimit : &kNameLimit);
  if (text.size() <= static_cast<size_t>(limit.most)) return absl::OkStatus();
  return Expected(absl::StrCat("at most ", limit.most, " bytes"),
                  absl::StrCat(text.size(), ": ", Quoted(text)));
}

absl::Status CheckEnumerator(const FieldDescriptor& field, int value) {
  if (field.enum_type()->FindValueByNumber(value) != nullptr) return absl::OkStatus();
  return Expected(absl::StrCat("one of ", field.enum_type()->name()), absl::StrCat(value));
}

absl::Status CheckDuration(const google::protobuf::Duration& duration) {
  HPO_RETURN_IF_ERROR(Annotate(CheckRange(0, kLongestDuration, duration.seconds()), "seconds"));
  return Annotate(CheckRange(0, kMostNanos, duration.nanos()), "nanos");
}

absl::Status CheckTimestamp(const google::protobuf::Timestamp& time) {
  HPO_RETURN_IF_ERROR(Annotate(CheckRange(kFirstSecond, kLastSecond, time.seconds()), "seconds"));
  return Annotate(CheckRange(0, kMostNanos, time.nanos()), "nanos");
}

absl::Status CheckMessage(const Message& message);

// One value: that of a field, or an element of a repeated one.
absl::Status CheckValue(const Message& message, const FieldDescriptor& field, int element) {
  const Reflection& in = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return CheckNumber(field, many ? in.GetRepeatedInt32(message, &field, element)
                                     : in.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return CheckNumber(field, many ? in.GetRepeatedInt64(message, &field, element)
                                     : in.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return CheckReal(field, many ? in.GetRepeatedDouble(message, &field, element)
                                   : in.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return CheckEnumerator(field, many ? in.GetRepeatedEnumValue(message, &field, element)
                                         : in.GetEnumValue(message, &field));
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string buffer;
      return CheckText(field, many
                                  ? in.GetRepeatedStringReference(message, &field, element, &buffer)
                                  : in.GetStringReference(message, &field, &buffer));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return CheckMessage(many ? in.GetRepeatedMessage(message, &field, element)
                               : in.GetMessage(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
    case FieldDescriptor::CPPTYPE_UINT32:  // what there is are seeds: any value will do
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

// "measurements[3]", or "metrics['loss']" of a map.
std::string PlaceOf(const Message& message, const FieldDescriptor& field, int element) {
  if (!field.is_map()) return absl::StrCat(field.name(), "[", element, "]");
  const Message& entry = message.GetReflection()->GetRepeatedMessage(message, &field, element);
  const FieldDescriptor& key = *field.message_type()->map_key();
  const Reflection& in = *entry.GetReflection();
  if (key.cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    return absl::StrCat(field.name(), "[", in.GetInt64(entry, &key), "]");
  }
  return absl::StrCat(field.name(), "[", Quoted(in.GetString(entry, &key)), "]");
}

// An error of a field within a field reads "outer.inner: ...".
absl::Status Inside(const absl::Status& status, absl::string_view place,
                    const FieldDescriptor& field) {
  if (status.ok()) return status;
  const bool deeper = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  return absl::Status(status.code(), absl::StrCat(place, deeper ? "." : ": ", status.message()));
}

absl::Status CheckField(const Message& message, const FieldDescriptor& field) {
  if (!field.is_repeated()) return Inside(CheckValue(message, field, 0), field.name(), field);
  const int size = message.GetReflection()->FieldSize(message, &field);
  const Limit& limit = *FindOr(TheRules().lists, field, &kFactLimit);
  if (size > limit.most) {
    return Annotate(Expected(absl::StrCat("at most ", limit.most, " of them"), absl::StrCat(size)),
                    field.name());
  }
  for (int i = 0; i < size; ++i) {
    const absl::Status status = CheckValue(message, field, i);
    if (!status.ok()) return Inside(status, PlaceOf(message, field, i), field);
  }
  return absl::OkStatus();
}

absl::Status CheckMessage(const Message& message) {
  if (const auto* duration = dynamic_cast<const google::protobuf::Duration*>(&message)) {
    return CheckDuration(*duration);
  }
  if (const auto* time = dynamic_cast<const google::protobuf::Timestamp*>(&message)) {
    return CheckTimestamp(*time);
  }
  // What a message leaves at its zero is within every rule.
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    HPO_RETURN_IF_ERROR(CheckField(message, *field));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRequest(const Message& request) { return CheckMessage(request); }

}  // namespace hpo
