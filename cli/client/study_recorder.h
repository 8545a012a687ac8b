// Asks a server all that the page shows of a study, and keeps the answers for a page that is opened
// without a server (web/API.md, "An exported page").
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client/server_connection.h"

namespace hpo::cli {

// Trials whose details are recorded: the best ones, and the newest ones.
inline constexpr int kRecordedBestTrials = 20;
inline constexpr int kRecordedNewestTrials = 200;

// Not thread-safe.
class StudyRecorder {
 public:
  // `connection` outlives it.
  explicit StudyRecorder(ServerConnection& connection) : connection_(connection) {}

  // {"recorded":TIME,"calls":[...],"trials":[...]}, without a "<". What the server refuses, such as
  // the importance of parameters before two trials have completed, is left out.
  //   NotFound     there is no such study
  //   Unavailable  the server is gone
  absl::StatusOr<std::string> Record(const std::string& study);

 private:
  template <typename Stub, typename Request, typename Response>
  absl::Status Keep(const char* method, Stub& stub,
                    grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* answer);

  absl::Status KeepAnalysis(const v1::Study& study);
  absl::Status KeepCurves(const std::string& study);
  absl::Status KeepTable(const std::string& study, std::set<int64_t>& newest);

  ServerConnection& connection_;
  std::vector<std::string> calls_;
  std::vector<std::string> pages_;
};

}  // namespace hpo::cli
