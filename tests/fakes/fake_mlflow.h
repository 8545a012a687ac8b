// An MLflow tracking server in memory, behind the HTTP client's interface: the calls that
// MlflowClient makes, strict about what MLflow is strict about. Thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/interop/mlflow/http_client.h"
#include "nlohmann/json.hpp"

namespace hpo {

class FakeMlflow {
 public:
  using Json = nlohmann::json;

  struct Run {
    std::string experiment;
    std::string name;
    std::string status = "RUNNING";
    int64_t start = 0;
    int64_t end = 0;
    std::map<std::string, std::string> params;
    std::map<std::string, std::string> tags;
    std::vector<Json> metrics;
  };

  // ---- Script ----

  // The next calls to `path` ("runs/create") are answered with this instead, `times` times; a
  // status of 0: nobody answers. `done`: the call has its effect all the same.
  void Fail(const std::string& path, int status, const std::string& body, int times = 1,
            bool done = false) {
    absl::MutexLock lock(&mutex_);
    failures_[path] = {status, body, times, done};
  }
  void Recover() {
    absl::MutexLock lock(&mutex_);
    failures_.clear();
  }
  // The experiment is there already, in this state.
  void AddExperiment(const std::string& name, const std::string& stage) {
    absl::MutexLock lock(&mutex_);
    experiments_[name] = stage;
  }
  // Runs a page of a search.
  void SetPageSize(size_t size) {
    absl::MutexLock lock(&mutex_);
    page_size_ = size;
  }

  // ---- What happened ----

  std::vector<Run> runs() const {
    absl::MutexLock lock(&mutex_);
    std::vector<Run> all;
    for (const auto& [id, run] : runs_) all.push_back(run);
    return all;
  }
  std::vector<std::pair<std::string, Json>> calls() const {
    absl::MutexLock lock(&mutex_);
    return calls_;
  }
  size_t NumCalls(const std::string& path) const {
    absl::MutexLock lock(&mutex_);
    size_t count = 0;
    for (const auto& [called, body] : calls_) count += called == path ? 1 : 0;
    return count;
  }
  // Waits until `path` was called so often; false after 20 s.
  bool AwaitCalls(const std::string& path, size_t count) const {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] {
      size_t seen = 0;
      for (const auto& [called, body] : calls_) seen += called == path ? 1 : 0;
      return seen >= count;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(20));
  }

  absl::StatusOr<HttpResponse> Answer(const HttpRequest& request) {
    absl::MutexLock lock(&mutex_);
    absl::string_view rest = request.url;
    if (!absl::ConsumePrefix(&rest, "http://mlflow:5000/api/2.0/mlflow/")) {
      return HttpResponse{.status = 404, .body = "<html>no such page</html>"};
    }
    const std::string path(rest.substr(0, rest.find('?')));
    const Json body = request.body.empty() ? Json(std::string(rest)) : Json::parse(request.body);
    calls_.emplace_back(path, body);
    const auto failure = failures_.find(path);
    if (failure == failures_.end() || failure->second.times == 0) return Serve(path, body);
    --failure->second.times;
    if (failure->second.done) static_cast<void>(Serve(path, body));
    if (failure->second.status == 0) return absl::UnavailableError("connection refused");
    return HttpResponse{.status = failure->second.status, .body = failure->second.body};
  }

 private:
  struct Failure {
    int status = 0;
    std::string body;
    int times = 0;
    bool done = false;
  };

  static HttpResponse Ok(const Json& json) { return {.status = 200, .body = json.dump()}; }
  static HttpResponse Error(int status, const std::string& code, const std::string& message) {
    return {.status = status, .body = Json{{"error_code", code}, {"message", message}}.dump()};
  }

  HttpResponse Serve(const std::string& path, const Json& body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (path == "experiments/get-by-name") return GetExperiment(body.get<std::string>());
    if (path == "experiments/create") {
      experiments_[body["name"]] = "active";
      return Ok({{"experiment_id", "id-of-" + body["name"].get<std::string>()}});
    }
    if (path == "runs/create") return CreateRun(body);
    if (path == "runs/search") return Search(body);
    const std::string id = body["run_id"];
    if (!runs_.contains(id)) return Error(404, "RESOURCE_DOES_NOT_EXIST", "no run " + id);
    if (path == "runs/log-batch") return LogBatch(runs_[id], body);
    if (path != "runs/update") return Error(404, "ENDPOINT_NOT_FOUND", path);
    runs_[id].status = body["status"];
    runs_[id].end = body.value("end_time", int64_t{0});
    return Ok(Json::object());
  }

  HttpResponse GetExperiment(const std::string& query) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string name = query.substr(query.find('=') + 1);
    const auto found = experiments_.find(name);
    if (found == experiments_.end()) {
      return Error(404, "RESOURCE_DOES_NOT_EXIST", "no experiment " + name);
    }
    return Ok(
        {{"experiment", {{"experiment_id", "id-of-" + name}, {"lifecycle_stage", found->second}}}});
  }

  HttpResponse CreateRun(const Json& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string id = absl::StrCat("run-", 100 + runs_.size());
    Run& run = runs_[id];
    run.experiment = body["experiment_id"];
    run.name = body["run_name"];
    run.start = body["start_time"];
    for (const Json& tag : body["tags"]) run.tags[tag["key"]] = tag["value"];
    return Ok({{"run", {{"info", {{"run_id", id}}}}}});
  }

  HttpResponse LogBatch(Run& run, const Json& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t num_metrics = body["metrics"].size();
    const size_t total = num_metrics + body["params"].size() + body["tags"].size();
    if (body["params"].size() > 100 || body["tags"].size() > 100 || total > 1000) {
      return Error(400, "INVALID_PARAMETER_VALUE", "a batch too large");
    }
    for (const Json& param : body["params"]) {
      const auto [known, added] = run.params.emplace(param["key"], param["value"]);
      if (!added && known->second != param["value"]) {
        return Error(400, "INVALID_PARAMETER_VALUE", "params cannot be changed");
      }
    }
    for (const Json& tag : body["tags"]) run.tags[tag["key"]] = tag["value"];
    for (const Json& metric : body["metrics"]) run.metrics.push_back(metric);
    return Ok(Json::object());
  }

  HttpResponse Search(const Json& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    size_t from = 0;
    if (body.contains("page_token")) from = std::stoul(body["page_token"].get<std::string>());
    Json found = Json::array();
    size_t at = 0;
    for (const auto& [id, run] : runs_) {
      if (at++ < from || found.size() == page_size_) continue;
      Json tags = Json::array();
      for (const auto& [key, value] : run.tags) tags.push_back({{"key", key}, {"value", value}});
      found.push_back({{"info", {{"run_id", id}}}, {"data", {{"tags", tags}}}});
    }
    Json page = {{"runs", found}};
    if (from + page_size_ < runs_.size()) page["next_page_token"] = absl::StrCat(from + page_size_);
    return Ok(page);
  }

  mutable absl::Mutex mutex_;
  std::map<std::string, std::string> experiments_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Run> runs_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Failure> failures_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, Json>> calls_ ABSL_GUARDED_BY(mutex_);
  size_t page_size_ ABSL_GUARDED_BY(mutex_) = 1000;
};

// A connection to it.
class FakeMlflowHttp final : public HttpClient {
 public:
  explicit FakeMlflowHttp(FakeMlflow& mlflow) : mlflow_(mlflow) {}
  absl::StatusOr<HttpResponse> Send(const HttpRequest& request) override {
    return mlflow_.Answer(request);
  }
  std::string Escape(const std::string& text) override { return text; }

 private:
  FakeMlflow& mlflow_;
};

}  // namespace hpo
