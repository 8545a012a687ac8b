// MLflow's tracking server through its REST interface, version 2.0: the few calls that write runs.
// Source: mlflow.org/docs/latest/api_reference/rest-api.html (paths, fields, limits of a batch).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/interop/mlflow/http_client.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

struct MlflowMetric {
  std::string key;
  double value = 0.0;  // need not be finite
  int64_t step = 0;
  absl::Time time;
  bool operator==(const MlflowMetric&) const = default;
};

// What one run gets. Params cannot be changed once logged; tags can.
struct MlflowBatch {
  std::map<std::string, std::string> params;
  std::map<std::string, std::string> tags;
  std::vector<MlflowMetric> metrics;
};

struct MlflowRun {
  std::string id;
  std::map<std::string, std::string> tags;
};

// Every error names the server's address, the call, the status and MLflow's own message.
//   Unavailable        nobody answered, or status 429 or 5xx: worth trying again
//   NotFound           404
//   PermissionDenied   401, 403
//   Cancelled          see HttpClient
//   InvalidArgument    any other status than 2xx, or an answer that is not MLflow's
// One thread at a time.
class MlflowClient {
 public:
  // `uri` as CheckMlflowUri takes it; `http` outlives the client.
  MlflowClient(const std::string& uri, HttpClient& http);

  // The experiment's id; it is made where there is none of that name.
  absl::StatusOr<std::string> FindOrCreateExperiment(const std::string& name);

  // Every run of the experiment that has tag `key` with `value` (neither holds a quote).
  absl::StatusOr<std::vector<MlflowRun>> SearchRuns(const std::string& experiment,
                                                    const std::string& key,
                                                    const std::string& value);

  // The run's id.
  absl::StatusOr<std::string> CreateRun(const std::string& experiment, const std::string& name,
                                        absl::Time start,
                                        const std::map<std::string, std::string>& tags);

  // In as many calls as the limits ask for; tags go last, so that they may tell how far it got.
  absl::Status LogBatch(const std::string& run, const MlflowBatch& batch);

  // `status`: "RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED". `end`: InfinitePast for none.
  absl::Status UpdateRun(const std::string& run, const std::string& status, absl::Time end);

  const std::string& uri() const { return uri_; }

 private:
  absl::StatusOr<nlohmann::json> Call(const std::string& method, const std::string& path,
                                      const nlohmann::json& body);

  const std::string uri_;  // without a slash at its end
  HttpClient& http_;
};

//   InvalidArgument  not "http://host..." or "https://host..."; a user's name and password (those
//                    come from the environment), a query or a space in it
absl::Status CheckMlflowUri(const std::string& uri);

// An HTTP client with the credentials that MLflow's own clients take from the environment:
// MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD.
std::unique_ptr<HttpClient> MakeMlflowHttp(HttpOptions options);

}  // namespace hpo
