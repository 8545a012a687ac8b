#include "server/json/watch_json.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "google/protobuf/util/json_util.h"
#include "proto/convert/study_exchange_proto.h"
#include "proto/convert/study_proto.h"

namespace hpo::server {
namespace {

std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto written = google::protobuf::util::MessageToJsonString(message, &json, options);
  return written.ok() ? json : "{}";
}

JsonEvent EventOf(const StudyStatus& study) {
  return {.name = "snapshot", .sequence = study.sequence, .data = JsonOf(ToProto(study))};
}

JsonEvent EventOf(const WatchEvent& event) {
  if (const auto* study = std::get_if<StudyStatus>(&event)) return EventOf(*study);
  if (const auto* bookmark = std::get_if<Bookmark>(&event)) {
    return {.name = "bookmark",
            .sequence = bookmark->value,
            .data = absl::StrCat("{\"sequence\":\"", bookmark->value, "\"}")};
  }
  const auto& change = std::get<TrialEvent>(event);
  return {.name = "change",
          .sequence = change.sequence,
          .data = JsonOf(ToProto(event).change()),
          .trial = change.trial.id.number.value,
          .kind = change.kind};
}

}  // namespace

absl::Status WatchJson(const StudyQueries& queries, const std::string& study,
                       const std::function<void(JsonEvent)>& emit,
                       const std::function<bool()>& cancelled) {
  return queries.WatchStudy(
      study, /*after_sequence=*/0,
      [&emit](const WatchEvent& event) {
        emit(EventOf(event));
        return true;
      },
      cancelled);
}

absl::StatusOr<JsonEvent> SnapshotJson(const StudyQueries& queries, const std::string& study) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus status, queries.GetStudy(study));
  return EventOf(status);
}

}  // namespace hpo::server
