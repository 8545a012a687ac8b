// The whole server in one object: database, scheduler, apis and gRPC, put together and taken apart
// in the right order. What hpo-server runs, and what tests run in process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/command_line/listen_address.h"
#include "server/access/access_control.h"
#include "server/access/audit_log.h"
#include "server/access/token_issuer.h"
#include "server/access/token_registry.h"
#include "server/analysis/analysis_api.h"
#include "server/api/admin_api.h"
#include "server/api/study_api.h"
#include "server/api/worker_api.h"
#include "server/health_log.h"
#include "server/http/metrics_endpoint.h"
#include "server/http/page_server.h"
#include "server/mlflow_logger.h"
#include "server/optuna/optuna_api.h"
#include "server/rpc/rpc_server.h"
#include "server/scheduler/trial_scheduler.h"
#include "server/security_options.h"

namespace hpo::server {

struct CoordinatorOptions {
  std::string database;  // path; missing folders are created
  ListenAddress listen;
  std::vector<ListenAddress> also_listen;
  SecurityOptions security;
  std::vector<StudySpec> studies;  // added to those in the database
  SchedulerOptions scheduler;
  std::string mlflow;  // address of a tracking server to write trials to; empty: none
  std::optional<ListenAddress> metrics;  // where monitoring asks (server/http); nullopt: nowhere
  std::optional<ListenAddress> http;     // where the page is served; nullopt: nowhere
  // Asked where the database cannot be used for now (a full disk): whether to try again, after
  // having waited. Empty: Start fails with what it met.
  std::function<bool(const absl::Status&)> try_again;
};

// Thread-safe. Serves from Start until Drain or destruction.
class Coordinator {
 public:
  // `clock` outlives the coordinator.
  //   FailedPrecondition  the database is in use or of a newer version, or a study changed
  //   Unavailable         the address is in use, or the database cannot be used for now
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(const CoordinatorOptions& options,
                                                            const Clock& clock);
  Coordinator(const Coordinator&) = delete;
  ~Coordinator();

  // Hands out nothing more, answers waiting calls, gives those in flight up to `grace`. Idempotent.
  void Drain(absl::Duration grace);

  // Tells the log and health checks what keeps the server from working, and when it is over. To be
  // called each second or so, by one thread.
  void LookAtHealth();

  const std::string& address() const { return rpc_->address(); }
  // The file with the line that starts a worker on another machine; empty: there is no TLS.
  std::string join_file() const;
  // "http://127.0.0.1:8080/", where the page is served; empty: nowhere.
  std::string page_url() const { return page_ == nullptr ? "" : page_->url(); }
  // Where monitoring asks; empty: nowhere.
  std::string metrics_url() const { return metrics_ == nullptr ? "" : metrics_->url(); }
  StudyApi& studies() { return studies_; }
  WorkerApi& workers() { return workers_; }
  AdminApi& admin() { return admin_; }
  FleetApi& fleet() { return fleet_; }
  const AnalysisApi& analysis() const { return analysis_; }
  OptunaApi& optuna() { return optuna_; }
  AccessControl& access() { return access_; }
  TokenRegistry& tokens() { return *tokens_; }

 private:
  // `store` is the scheduler's.
  Coordinator(std::unique_ptr<TrialScheduler> scheduler, Store& store,
              std::unique_ptr<MlflowLogger> mlflow, const Clock& clock,
              const CoordinatorOptions& options);

  // Certificate, tokens, gRPC and the page.
  absl::Status Serve(const CoordinatorOptions& options);
  absl::Status ServePage(const CoordinatorOptions& options, const std::string& tls_host);
  static absl::StatusOr<std::unique_ptr<Coordinator>> TryStart(const CoordinatorOptions& options,
                                                               const Clock& clock);

  // Before the scheduler, which tells it of changes.
  const std::unique_ptr<MlflowLogger> mlflow_;  // may be null
  const std::unique_ptr<TrialScheduler> scheduler_;
  StudyApi studies_;
  WorkerApi workers_;
  AdminApi admin_;
  FleetApi fleet_;
  AnalysisApi analysis_;
  OptunaApi optuna_;
  AuditLog audit_;
  AccessControl access_;
  std::unique_ptr<TokenRegistry> tokens_;
  std::unique_ptr<TokenIssuer> issuer_;  // null: no TLS
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<PageServer> page_;          // null: there is no page
  std::unique_ptr<MetricsEndpoint> metrics_;  // null: monitoring asks nowhere
  std::thread table_reader_;  // reads what the page's first views need; until it has, or the drain
  const Clock& clock_;
  HealthLog health_log_;
};

}  // namespace hpo::server
