#include "common/interop/mlflow/mlflow_client.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/json_reader.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::json;

constexpr char kApi[] = "/api/2.0/mlflow/";
// Of one log-batch call; with 100 params and 100 tags, 1,000 in all.
constexpr size_t kMostMetrics = 800;
constexpr size_t kMostPairs = 100;
constexpr Limit kValueLimit = {.most = 5000, .unit = "bytes"};  // of params and tags
constexpr int kRunsPerPage = 1000;
constexpr size_t kLongestQuote = 300;  // of an answer that is not MLflow's, in an error

// JSON has no numbers for these; protobuf's JSON has names.
Json NumberJson(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json PairJson(const std::string& key, const std::string& value) {
  return {{"key", key}, {"value", Shortened(value, kValueLimit)}};
}

Json MetricJson(const MlflowMetric& metric) {
  return {{"key", metric.key},
          {"value", NumberJson(metric.value)},
          {"timestamp", absl::ToUnixMillis(metric.time)},
          {"step", metric.step}};
}

Json PairsJson(const std::map<std::string, std::string>& pairs) {
  Json json = Json::array();
  for (const auto& [key, value] : pairs) json.push_back(PairJson(key, value));
  return json;
}

absl::StatusCode CodeOf(int status) {
  if (status == 429 || status >= 500) return absl::StatusCode::kUnavailable;
  if (status == 404) return absl::StatusCode::kNotFound;
  if (status == 401 || status == 403) return absl::StatusCode::kPermissionDenied;
  return absl::StatusCode::kInvalidArgument;
}

// "RESOURCE_DOES_NOT_EXIST: no experiment ...", or the answer itself.
std::string MessageOf(const HttpResponse& response) {
  const Json json = Json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("message") || !json["message"].is_string()) {
    return response.body.substr(0, kLongestQuote);
  }
  const bool coded = json.contains("error_code") && json["error_code"].is_string();
  return absl::StrCat(coded ? json["error_code"].get<std::string>() + ": " : "",
                      json["message"].get<std::string>());
}

// The text at `path` below `json`.
absl::StatusOr<std::string> TextAt(const Json& json, const char* path) {
  const Json::json_pointer pointer(path);
  if (json.contains(pointer) && json[pointer].is_string()) return json[pointer].get<std::string>();
  return absl::InvalidArgumentError(
      absl::StrCat("expected an answer of MLflow with ", path, ", got ", DescribeJson(json)));
}

absl::StatusOr<MlflowRun> RunFromJson(const Json& json) {
  MlflowRun run;
  HPO_ASSIGN_OR_RETURN(run.id, TextAt(json, "/info/run_id"));
  const Json tags = json.value(Json::json_pointer("/data/tags"), Json::array());
  for (const Json& tag : tags) {
    HPO_ASSIGN_OR_RETURN(const std::string key, TextAt(tag, "/key"));
    HPO_ASSIGN_OR_RETURN(run.tags[key], TextAt(tag, "/value"));
  }
  return run;
}

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

MlflowClient::MlflowClient(const std::string& uri, HttpClient& http)
    : uri_(absl::StripSuffix(uri, "/")), http_(http) {}

absl::StatusOr<Json> MlflowClient::Call(const std::string& method, const std::string& path,
                                        const Json& body) {
  const absl::StatusOr<HttpResponse> response =
      http_.Send({.method = method,
                  .url = absl::StrCat(uri_, kApi, path),
                  .body = body.is_null() ? "" : DumpJson(body)});
  const std::string call = absl::StrCat("MLflow at ", uri_, ": ", method, " ", kApi,
                                        path.substr(0, path.find('?')), ": ");
  if (!response.ok()) {
    return absl::Status(response.status().code(), absl::StrCat(call, response.status().message()));
  }
  if (response->status < 200 || response->status >= 300) {
    return absl::Status(CodeOf(response->status), absl::StrCat(call, "status ", response->status,
                                                               ": ", MessageOf(*response)));
  }
  Json json = Json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return absl::InvalidArgumentError(
      absl::StrCat(call, "expected a JSON object, got: ", response->body.substr(0, kLongestQuote)));
}

absl::StatusOr<std::string> MlflowClient::FindOrCreateExperiment(const std::string& name) {
  const std::string by_name =
      absl::StrCat("experiments/get-by-name?experiment_name=", http_.Escape(name));
  absl::StatusOr<Json> found = Call("GET", by_name, nullptr);
  if (absl::IsNotFound(found.status())) {
    absl::StatusOr<Json> created = Call("POST", "experiments/create", {{"name", name}});
    if (created.ok()) return TextAt(*created, "/experiment_id");
    // Somebody else may have made it meanwhile.
    found = Call("GET", by_name, nullptr);
    if (!found.ok()) return created.status();
  }
  HPO_RETURN_IF_ERROR(found.status());
  HPO_ASSIGN_OR_RETURN(const std::string stage, TextAt(*found, "/experiment/lifecycle_stage"));
  if (stage != "active") {
    return absl::InvalidArgumentError(absl::StrCat("MLflow at ", uri_, ": experiment '", name,
                                                   "': expected an active one, got ", stage,
                                                   "; restore it there or name another"));
  }
  return TextAt(*found, "/experiment/experiment_id");
}

absl::StatusOr<std::vector<MlflowRun>> MlflowClient::SearchRuns(const std::string& experiment,
                                                                const std::string& key,
                                                                const std::string& value) {
  std::vector<MlflowRun> runs;
  Json request = {{"experiment_ids", {experiment}},
                  {"filter", absl::StrCat("tags.`", key, "` = '", value, "'")},
                  {"max_results", kRunsPerPage}};
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const Json page, Call("POST", "runs/search", request));
    for (const Json& run : page.value("runs", Json::array())) {
      HPO_ASSIGN_OR_RETURN(runs.emplace_back(), RunFromJson(run));
    }
    const absl::StatusOr<std::string> next = TextAt(page, "/next_page_token");
    if (!next.ok() || next->empty()) return runs;
    request["page_token"] = *next;
  }
}

absl::StatusOr<std::string> MlflowClient::CreateRun(
    const std::string& experiment, const std::string& name, absl::Time start,
    const std::map<std::string, std::string>& tags) {
  HPO_ASSIGN_OR_RETURN(const Json created, Call("POST", "runs/create",
                                                {{"experiment_id", experiment},
                                                 {"run_name", name},
                                                 {"start_time", absl::ToUnixMillis(start)},
                                                 {"tags", PairsJson(tags)}}));
  return TextAt(created, "/run/info/run_id");
}

absl::Status MlflowClient::LogBatch(const std::string& run, const MlflowBatch& batch) {
  const Json params = PairsJson(batch.params);
  const Json tags = PairsJson(batch.tags);
  Json metrics = Json::array();
  for (const MlflowMetric& metric : batch.metrics) metrics.push_back(MetricJson(metric));

  // The part of `all` from `from` on, at most `most` long; moves `from` behind it.
  const auto take = [](const Json& all, size_t& from, size_t most) {
    const size_t end = std::min(all.size(), from + most);
    Json part = Json::array();
    for (; from < end; ++from) part.push_back(all[from]);
    return part;
  };
  size_t num_params = 0;
  size_t num_metrics = 0;
  size_t num_tags = 0;
  while (num_params < params.size() || num_metrics < metrics.size() || num_tags < tags.size()) {
    Json body = {{"run_id", run},
                 {"params", take(params, num_params, kMostPairs)},
                 {"metrics", take(metrics, num_metrics, kMostMetrics)}};
    const bool told_all = num_params == params.size() && num_metrics == metrics.size();
    body["tags"] = told_all ? take(tags, num_tags, kMostPairs) : Json::array();
    HPO_RETURN_IF_ERROR(Call("POST", "runs/log-batch", body).status());
  }
  return absl::OkStatus();
}

absl::Status MlflowClient::UpdateRun(const std::string& run, const std::string& status,
                                     absl::Time end) {
  Json body = {{"run_id", run}, {"status", status}};
  if (end != absl::InfinitePast()) body["end_time"] = absl::ToUnixMillis(end);
  return Call("POST", "runs/update", body).status();
}

absl::Status CheckMlflowUri(const std::string& uri) {
  absl::string_view rest = uri;
  const bool web = absl::ConsumePrefix(&rest, "http://") || absl::ConsumePrefix(&rest, "https://");
  const bool plain = rest.find_first_of("@?# ") == absl::string_view::npos;
  if (web && plain && !rest.empty() && rest.front() != '/') return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "MLflow's address: expected http://host:port or https://host (who you are is read from "
      "MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD), got '",
      absl::StrContains(uri, '@') ? "(an address with a user)" : uri, "'"));
}

std::unique_ptr<HttpClient> MakeMlflowHttp(HttpOptions options) {
  options.token = FromEnvironment("MLFLOW_TRACKING_TOKEN");
  options.user = FromEnvironment("MLFLOW_TRACKING_USERNAME");
  options.password = FromEnvironment("MLFLOW_TRACKING_PASSWORD");
  return MakeHttpClient(options);
}

}  // namespace hpo
