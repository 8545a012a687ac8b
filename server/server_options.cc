#include "server/server_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/command_line/bounds.h"
#include "common/command_line/command_line.h"
#include "common/interop/mlflow/mlflow_client.h"
#include "common/study_file/study_overrides.h"

namespace hpo::server {
namespace {

constexpr char kExamples[] = R"(
Examples:
  hpo-server --study criteria                       a preset, on 127.0.0.1:50051
  hpo-server --study ./my.yaml --trials 200         your own study, with a budget of 200
  hpo-server --study a --study b --listen unix:/run/user/1000/hpo.sock
  hpo-server --study a --http 127.0.0.1:8080        with the page
  hpo-server --study a --listen 0.0.0.0:50051       for workers on other machines (TLS, tokens)

Then start workers, such as hpo-worker --gpu 0. hpo status and hpo watch show the progress.
The database contains every trial, so a server that is started again continues the studies.
SIGTERM or Ctrl-C ends the server. The exit status is 7 if too many failed trials ended a study of
--study, and 0 otherwise. A second signal ends the server at once.
)";

// The command line as typed, before its values are checked.
struct RawOptions {
  std::vector<std::string> listen = {"127.0.0.1:50051"};
  std::string lease_ttl = "60s";
  std::string metrics;
  std::string http;
  StudyOverrides flags;
};

// How other machines reach it.
void DeclareSecurity(CLI::App& app, SecurityOptions& security) {
  app.add_option("--advertise", security.advertise,
                 "Host or host and port by which other machines reach the server, for join strings "
                 "[default: the address of --listen, or the name of this machine]")
      ->type_name("HOST[:PORT]");
  CLI::Option* const certificate =
      app.add_option(
             "--tls-cert", security.certificate_file,
             "Certificate in PEM, followed by its chain [default: one that the server signs "
             "itself, beside the database]")
          ->type_name("FILE")
          ->check(CLI::ExistingFile);
  CLI::Option* const key =
      app.add_option("--tls-key", security.key_file, "Private key of --tls-cert in PEM")
          ->type_name("FILE")
          ->check(CLI::ExistingFile)
          ->needs(certificate);
  certificate->needs(key);
  app.add_option("--tls-client-ca", security.client_ca_file,
                 "Authorities in PEM whose client certificates are admitted as well as tokens; the "
                 "OU of a certificate is its role: read, work, write or admin")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  CLI::Option* const tls =
      app.add_flag("--tls", security.tls_on_loopback, "Speak TLS at loopback addresses, too");
  app.add_flag(
         "--insecure", security.insecure,
         "Speak plaintext where other machines can connect. Everybody who can connect can run "
         "any program on your workers")
      ->excludes(tls)
      ->excludes(certificate);
}

// When it ends, and whom it tells that it runs.
void DeclareLife(CLI::App& app, ServerOptions& options, RawOptions& raw) {
  app.add_flag("--exit-when-finished", options.exit_when_finished,
               "End when every study is finished and the workers have left");
  app.add_flag("--resume", options.resume,
               "Continue the studies of --study that were paused or stopped, or that failed");
  app.add_flag("--edit", options.edit,
               "Take changed ranges and choices of --study, as hpo study edit does");
  app.add_option("--end-with", options.end_with,
                 "End when this process ends, which must have started the server")
      ->type_name("PID");
  app.add_option("--address-file", options.address_file,
                 "Write the server's address to this file when it is ready")
      ->type_name("FILE");
  app.add_option("--mlflow", options.mlflow,
                 "Log the trials to this MLflow tracking server while they run (http://host:port)")
      ->type_name("URI");
  app.add_option("--http", raw.http,
                 "Serve the page, and the API as JSON, at this host and port (0: any free port). "
                 "Where other machines can connect it has the TLS and the tokens of --listen")
      ->type_name("ADDRESS");
  app.add_option(
         "--metrics", raw.metrics,
         "Serve metrics for Prometheus under /metrics at this loopback host and port (0: any "
         "free port)")
      ->type_name("ADDRESS");
  app.set_version_flag("--version", absl::StrCat("hpo-server ", std::string(Version())));
  app.footer(kExamples);
}

// What takes the place of values in study files.
void DeclareOverrides(CLI::App& app, StudyOverrides& flags) {
  app.add_option("--trials", flags.trials,
                 "Number of trials to run [default: the budget in the file]")
      ->type_name("N")
      ->check(AtLeast(1));
  app.add_option(
         "--target", flags.target,
         "End the study when a trial reaches this value of the objective [default: the target in "
         "the file]")
      ->type_name("VALUE");
  app.add_option("--epochs", flags.epochs,
                 "Number of epochs of each trial [default: the value in the file]")
      ->type_name("N")
      ->check(AtLeast(1));
  app.add_option("--train", flags.train, "Training file [default: the name in the file]")
      ->type_name("FILE");
  app.add_option("--validation", flags.validation,
                 "Validation file [default: the name in the file]")
      ->type_name("FILE");
  app.add_option("--seed", flags.seed,
                 "Seed of the sampler and the trials [default: the seed in the file]")
      ->type_name("N")
      ->check(Unsigned64());
  app.add_option("--name", flags.name,
                 "Name of the study, for a second study of the same file [default: the name in the "
                 "file]")
      ->type_name("NAME");
  app.add_option(
         "--task", flags.task,
         "Task of a study whose file names no task; with custom, workers run a program of your own")
      ->type_name("NAME");
}

void Declare(CLI::App& app, ServerOptions& options, RawOptions& raw) {
  app.add_option(
         "--study", options.studies,
         "Study to serve: a study file (YAML) or the name of a preset (repeatable). The studies "
         "in the database are served too")
      ->type_name("NAME|FILE");
  app.add_option("--listen", raw.listen,
                 "Address to listen on: an IP address and port (0: any free port), or "
                 "unix:/path/to/socket (repeatable). Where other machines can connect, the server "
                 "speaks TLS, and clients need a join string, which it prints [default: "
                 "127.0.0.1:50051]")
      ->type_name("ADDRESS")
      ->allow_extra_args(false);
  CLI::Option* const database =
      app.add_option("--db", options.database,
                     "SQLite file of the database; it is created if it does not exist [default: "
                     "$XDG_STATE_HOME/hpo/hpo.db]")
          ->type_name("FILE");
  app.add_option(
         "--snapshot-of", options.snapshot_of,
         "Serve a temporary copy of this database. The file is not changed, and another server "
         "may use it. hpo --db reads a database in this way")
      ->type_name("FILE")
      ->excludes(database);
  app.add_option(
         "--restore", options.restore,
         "Replace the database by this backup of hpo admin backup, and end. The old database is "
         "kept under another name")
      ->type_name("FILE");
  DeclareOverrides(app, raw.flags);
  app.add_option("--log-level", options.log_level,
                 "Lowest level of log lines: trace, debug, info, warn, error or off")
      ->type_name("LEVEL")
      ->capture_default_str();
  app.add_flag("--log-json", options.log_json, "Write each log line as a JSON object");
  app.add_option(
         "--lease-ttl", raw.lease_ttl,
         "Time to live of a lease. A worker that is silent for twice this time loses its trial "
         "to another worker. Short values are for tests")
      ->type_name("DURATION")
      ->capture_default_str();
  DeclareSecurity(app, options.security);
  DeclareLife(app, options, raw);
}

template <typename T>
void Prefer(std::optional<T>& flag, std::optional<T>& environment) {
  if (flag) environment = std::move(flag);
}

absl::StatusOr<StudyOverrides> OverEnvironment(StudyOverrides flags) {
  HPO_ASSIGN_OR_RETURN(StudyOverrides merged, OverridesFromEnvironment());
  Prefer(flags.epochs, merged.epochs);
  Prefer(flags.trials, merged.trials);
  Prefer(flags.target, merged.target);
  Prefer(flags.train, merged.train);
  Prefer(flags.validation, merged.validation);
  Prefer(flags.seed, merged.seed);
  Prefer(flags.name, merged.name);
  Prefer(flags.task, merged.task);
  return merged;
}

absl::StatusOr<std::string> DefaultDatabase() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return absl::StrCat(state, "/hpo/hpo.db");
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return absl::StrCat(home, "/.local/state/hpo/hpo.db");
  return absl::InvalidArgumentError(
      "--db: expected a file, as neither XDG_STATE_HOME nor HOME is set");
}

absl::StatusOr<absl::Duration> ParseTtl(const std::string& text) {
  absl::Duration ttl;
  if (!absl::ParseDuration(text, &ttl) || ttl <= absl::ZeroDuration() || ttl > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--lease-ttl: expected a duration such as 60s, up to 24h, got '", text, "'"));
  }
  return ttl;
}

absl::StatusOr<std::optional<ListenAddress>> ParseMetricsAddress(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(text);
  if (address.ok() && address->IsLoopback()) return *address;
  return absl::InvalidArgumentError(absl::StrCat(
      "--metrics: expected a loopback host and port such as 127.0.0.1:9464, got '", text, "'"));
}

absl::StatusOr<std::optional<ListenAddress>> ParseHttpAddress(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(text);
  if (address.ok() && !address->IsUnix()) return *address;
  return absl::InvalidArgumentError(
      absl::StrCat("--http: expected a host and port such as 127.0.0.1:8080, got '", text, "'"));
}

absl::Status Check(RawOptions raw, ServerOptions& options) {
  HPO_ASSIGN_OR_RETURN(options.listen, ParseListenAddress(raw.listen.front()));
  for (size_t i = 1; i < raw.listen.size(); ++i) {
    HPO_ASSIGN_OR_RETURN(options.also_listen.emplace_back(), ParseListenAddress(raw.listen[i]));
  }
  HPO_ASSIGN_OR_RETURN(options.lease_ttl, ParseTtl(raw.lease_ttl));
  HPO_ASSIGN_OR_RETURN(options.metrics, ParseMetricsAddress(raw.metrics));
  HPO_ASSIGN_OR_RETURN(options.http, ParseHttpAddress(raw.http));
  HPO_ASSIGN_OR_RETURN(options.overrides, OverEnvironment(std::move(raw.flags)));
  if (options.overrides.name.has_value() && options.studies.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--name: expected one --study, got ", options.studies.size()));
  }
  if (!options.mlflow.empty()) HPO_RETURN_IF_ERROR(CheckMlflowUri(options.mlflow));
  if (options.database.empty() && options.snapshot_of.empty()) {
    HPO_ASSIGN_OR_RETURN(options.database, DefaultDatabase());
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<int> ReadServerOptions(int argc, const char* const* argv, std::ostream& out,
                                     std::ostream& err, ServerOptions& options) {
  CLI::App app("Stores studies, and proposes trials that fit on the GPU of the worker that asks.",
               "hpo-server");
  RawOptions raw;
  Declare(app, options, raw);
  if (const std::optional<int> over = ParseCommandLine(app, argc, argv, out, err)) return over;
  if (const absl::Status checked = Check(std::move(raw), options); !checked.ok()) {
    err << "hpo-server: " << checked.message() << "\n";
    return kUsageExit;
  }
  return std::nullopt;
}

}  // namespace hpo::server
