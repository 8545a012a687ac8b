// hpo-server's command line.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/command_line/listen_address.h"
#include "common/study_file/study_overrides.h"
#include "server/security_options.h"

namespace hpo::server {

struct ServerOptions {
  std::vector<std::string> studies;  // names or paths
  ListenAddress listen;
  std::vector<ListenAddress> also_listen;
  SecurityOptions security;
  std::string database;      // path; its folder is created
  StudyOverrides overrides;  // flags over environment
  std::string log_level = "info";
  bool log_json = false;
  absl::Duration lease_ttl = absl::Seconds(60);
  bool exit_when_finished = false;
  bool resume = false;
  bool edit = false;                // of ranges and choices, as the files have them
  std::optional<int64_t> end_with;  // the process that started it; nullopt: it outlives that
  std::string address_file;         // empty: none
  std::string restore;              // a backup that shall take the database's place; empty: serve
  std::string snapshot_of;          // a database of which a copy is served; empty: none
  std::string mlflow;               // address of a tracking server; empty: none
  std::optional<ListenAddress> metrics;  // where monitoring asks; nullopt: nowhere
  std::optional<ListenAddress> http;     // where the page is served; nullopt: nowhere
};

// Reads the command line and the environment (HPO_MODEL_CHOICES, HPO_EPOCHS, ...; XDG_STATE_HOME
// and HOME for the default database). nullopt: `options` is filled. Otherwise the exit status, see
// common/command_line/command_line.h.
std::optional<int> ReadServerOptions(int argc, const char* const* argv, std::ostream& out,
                                     std::ostream& err, ServerOptions& options);

}  // namespace hpo::server
