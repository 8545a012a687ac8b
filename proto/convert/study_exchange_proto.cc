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

v1::QueryTrialsRequest ToProto(const TableQuery& query) {
  v1::QueryTrialsRequest proto;
  for (const std::string& condition : query.where) proto.add_where(condition);
  proto.set_sort(query.sort);
  for (const std::string& column : query.columns) proto.add_columns(column);
  proto.set_page_size(query.page_size);
  proto.set_page_token(query.page_token);
  proto.set_from_end(query.from_end);
  return proto;
}

TableQuery FromProto(const v1::QueryTrialsRequest& proto) {
  return {.where = {proto.where().begin(), proto.where().end()},
          .sort = proto.sort(),
          .columns = {proto.columns().begin(), proto.columns().end()},
          .page_size = proto.page_size(),
          .page_token = proto.page_token(),
          .from_end = proto.from_end()};
}

v1::QueryTrialsResponse ToProto(const TablePage& page) {
  v1::QueryTrialsResponse proto;
  proto.set_total(page.total);
  proto.set_matching(page.matching);
  proto.set_position(page.position);
  proto.set_sequence(page.sequence);
  for (const int64_t number : page.numbers) proto.add_numbers(static_cast<int32_t>(number));
  for (const TableColumn& column : page.columns) {
    v1::TableColumn& one = *proto.add_columns();
    one.set_name(column.name);
    one.mutable_numbers()->Add(column.numbers.begin(), column.numbers.end());
    for (const std::string& text : column.texts) one.add_texts(text);
    one.mutable_indexes()->Add(column.indexes.begin(), column.indexes.end());
    one.mutable_missing()->Add(column.missing.begin(), column.missing.end());
  }
  for (const ColumnInfo& column : page.all_columns) {
    v1::ColumnInfo& one = *proto.add_all_columns();
    one.set_name(column.name);
    one.set_kind(column.kind == ColumnInfo::Kind::kField       ? v1::COLUMN_KIND_FIELD
                 : column.kind == ColumnInfo::Kind::kParameter ? v1::COLUMN_KIND_PARAMETER
                                                               : v1::COLUMN_KIND_METRIC);
    one.set_numeric(column.numeric);
    one.set_log(column.log);
  }
  proto.set_next_page_token(page.next_page_token);
  proto.set_previous_page_token(page.previous_page_token);
  return proto;
}

v1::GetHistoryResponse ToProto(const HistorySample& sample) {
  v1::GetHistoryResponse proto;
  proto.set_sequence(sample.sequence);
  proto.set_total(sample.total);
  for (const int64_t number : sample.numbers) proto.add_numbers(static_cast<int32_t>(number));
  proto.set_states(sample.states);
  for (const HistorySample::Series& series : sample.series) {
    v1::HistorySeries& one = *proto.add_series();
    one.set_metric(series.metric);
    for (const double value : series.values) one.add_values(static_cast<float>(value));
  }
  for (const int64_t number : sample.best_numbers) {
    proto.add_best_numbers(static_cast<int32_t>(number));
  }
  proto.mutable_best_values()->Add(sample.best_values.begin(), sample.best_values.end());
  return proto;
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
