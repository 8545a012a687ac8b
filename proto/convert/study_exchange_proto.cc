#include "proto/convert/study_exchange_proto.h"

#include <algorithm>

#include "common/base/status.h"

namespace hpo {
namespace {

constexpr const char* kWatchEvents[] = {"snapshot", "change", "bookmark"};

template <typename T>
void SortOnce(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

v1::UpdateStudyRequest ToProto(const StudyUpdate& update) {
  v1::UpdateStudyRequest proto = ToMessage<v1::UpdateStudyRequest>(update);
  if (update.remove_target) proto.set_remove_target(true);
  return proto;
}

absl::StatusOr<StudyUpdate> FromProto(const v1::UpdateStudyRequest& proto) {
  HPO_ASSIGN_OR_RETURN(StudyUpdate update, FromMessage<StudyUpdate>(proto));
  update.remove_target = proto.remove_target();
  return update;
}

absl::StatusOr<TrialQuery> FromProto(const v1::ListTrialsRequest& proto) {
  HPO_ASSIGN_OR_RETURN(TrialQuery query, FromMessage<TrialQuery>(proto));
  SortOnce(query.filter.states);
  SortOnce(query.filter.prune_reasons);
  return query;
}

v1::WatchStudyResponse ToProto(const WatchEvent& event) {
  v1::WatchStudyResponse proto;
  WriteOneOf(event, kWatchEvents, proto);
  return proto;
}

absl::StatusOr<WatchEvent> FromProto(const v1::WatchStudyResponse& proto) {
  if (proto.kind_case() == v1::WatchStudyResponse::KIND_NOT_SET) return Bookmark{};
  return ReadOneOf<WatchEvent>(proto, "watch", kWatchEvents);
}

}  // namespace hpo
