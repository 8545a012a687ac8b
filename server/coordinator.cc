#include "server/coordinator.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "server/http/metrics.h"
#include "server/storage/store.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr absl::Duration kRenewBefore = absl::Hours(24 * 30);

absl::Status CreateFolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot create the database's folder ", folder.string(), ": ", error.message()));
}

// Beside the database, since the two belong together.
std::string FolderOfAccess(const CoordinatorOptions& options) {
  return options.database + ".access";
}

std::vector<ListenAddress> AddressesOf(const CoordinatorOptions& options) {
  std::vector<ListenAddress> addresses = {options.listen};
  addresses.insert(addresses.end(), options.also_listen.begin(), options.also_listen.end());
  return addresses;
}

// The place, among the addresses, of the first one with TLS, by which other programs reach the
// server; nullopt: none has it.
std::optional<size_t> PlaceOfTls(const CoordinatorOptions& options) {
  const SecurityOptions& security = options.security;
  if (security.insecure) return std::nullopt;
  const std::vector<ListenAddress> addresses = AddressesOf(options);
  const auto found =
      std::find_if(addresses.begin(), addresses.end(), [&security](const ListenAddress& address) {
        return NeedsTls(address, security.tls_on_loopback);
      });
  if (found == addresses.end()) return std::nullopt;
  return static_cast<size_t>(found - addresses.begin());
}

// The host and the port by which clients reach the server.
void SetAdvertised(const SecurityOptions& security, const ListenAddress& address,
                   IssuerOptions& issuer) {
  const std::string& said = security.advertise;
  issuer.port = address.port;
  if (said.empty()) {
    issuer.host = ReachableHost(address.host);
    return;
  }
  const size_t colon = said.rfind(':');
  const bool has_port = colon != std::string::npos && said.find(':') == colon &&
                        absl::SimpleAtoi(said.substr(colon + 1), &issuer.port);
  issuer.host = has_port ? said.substr(0, colon) : said;
}

// Names of this server that a browser may have in its address line.
std::vector<std::string> NamesOf(const std::string& advertised_host) {
  std::array<char, 256> machine{};
  gethostname(machine.data(), machine.size() - 1);
  std::vector<std::string> names;
  for (const std::string& name : {advertised_host, std::string(machine.data())}) {
    const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
    if (!name.empty() && is_new) names.push_back(absl::AsciiStrToLower(name));
  }
  return names;
}

// `host`: of the address with TLS.
absl::StatusOr<tls::Identity> LoadIdentityFor(const CoordinatorOptions& options,
                                              const std::string& host, absl::Time now) {
  const SecurityOptions& security = options.security;
  if (security.certificate_file.empty()) {
    return tls::LoadOrMakeServerIdentity(FolderOfAccess(options), ReachableHost(host), now);
  }
  return tls::LoadIdentity(security.certificate_file, security.key_file);
}

// `host`: of the address with TLS.
absl::StatusOr<GateOptions> LoadGate(const CoordinatorOptions& options, const std::string& host,
                                     absl::Time now) {
  const SecurityOptions& security = options.security;
  const std::string folder = FolderOfAccess(options);
  HPO_RETURN_IF_ERROR(CreateFolderOf(folder + "/audit.jsonl"));
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  GateOptions gate;
  HPO_ASSIGN_OR_RETURN(gate.identity, LoadIdentityFor(options, host, now));
  if (!security.certificate_file.empty()) {
    HPO_RETURN_IF_ERROR(
        Annotate(tls::CheckDates(gate.identity.certificate.get(), now), security.certificate_file));
  }
  const absl::Duration left = tls::ExpiryOf(gate.identity.certificate.get()) - now;
  if (left < kRenewBefore) {
    spdlog::warn("the TLS certificate expires in {} days: renew it", left / absl::Hours(24));
  }
  gate.client_ca_file = security.client_ca_file;
  return gate;
}

}  // namespace

Coordinator::Coordinator(std::unique_ptr<TrialScheduler> scheduler, Store& store,
                         std::unique_ptr<MlflowLogger> mlflow, const Clock& clock,
                         const CoordinatorOptions& options)
    : mlflow_(std::move(mlflow)),
      scheduler_(std::move(scheduler)),
      studies_(*scheduler_),
      workers_(*scheduler_),
      admin_(*scheduler_),
      fleet_(*scheduler_),
      analysis_(*scheduler_, studies_.queries().tables()),
      optuna_(store, studies_.queries(), clock),
      audit_(PlaceOfTls(options) ? FolderOfAccess(options) + "/audit.jsonl" : "", clock),
      access_(audit_, clock),
      clock_(clock) {
  for (const std::string& found : admin_.GetServer().damage) {
    spdlog::error("the database is damaged: {}", found);
  }
  if (mlflow_ == nullptr) return;
  mlflow_->Start(
      [this](const TrialId& trial) {
        return studies_.queries().GetTrial(trial.study, trial.number);
      },
      [this](const std::string& study) { return studies_.queries().GetStudy(study); });
}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(const CoordinatorOptions& options,
                                                                const Clock& clock) {
  // Before anything is written: a second server must leave no trace.
  HPO_RETURN_IF_ERROR(CheckFree(options.listen));
  for (const ListenAddress& address : options.also_listen) HPO_RETURN_IF_ERROR(CheckFree(address));
  if (options.metrics) HPO_RETURN_IF_ERROR(CheckFree(*options.metrics));
  if (options.http) HPO_RETURN_IF_ERROR(Annotate(CheckFree(*options.http), "--http"));
  HPO_RETURN_IF_ERROR(CreateFolderOf(options.database));
  for (;;) {
    absl::StatusOr<std::unique_ptr<Coordinator>> started = TryStart(options, clock);
    const bool for_now = absl::IsUnavailable(started.status()) && options.try_again;
    if (!for_now || !options.try_again(started.status())) return started;
  }
}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::TryStart(
    const CoordinatorOptions& options, const Clock& clock) {
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, Store::Open(options.database));
  Store& stored = *store;
  SchedulerOptions scheduling = options.scheduler;
  std::unique_ptr<MlflowLogger> mlflow;
  if (!options.mlflow.empty()) {
    mlflow = std::make_unique<MlflowLogger>(options.mlflow);
    scheduling.on_trial_changed = [logger = mlflow.get()](const TrialId& trial) {
      logger->Changed(trial);
    };
  }
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<TrialScheduler> scheduler,
                       TrialScheduler::Create(std::move(store), clock, scheduling));
  std::unique_ptr<Coordinator> coordinator(
      new Coordinator(std::move(scheduler), stored, std::move(mlflow), clock, options));
  HPO_ASSIGN_OR_RETURN(coordinator->tokens_, TokenRegistry::Load(stored, clock));
  for (const StudySpec& study : options.studies) {
    const absl::Status added =
        coordinator->studies_.CreateStudy(study, /*validate_only=*/false, RandomId()).status();
    // The scheduler has said so; the other studies go on.
    if (!absl::IsDataLoss(added)) HPO_RETURN_IF_ERROR(added);
  }
  HPO_RETURN_IF_ERROR(coordinator->Serve(options));
  if (options.metrics) {
    HPO_ASSIGN_OR_RETURN(
        coordinator->metrics_, MetricsEndpoint::Start(*options.metrics, [&served = *coordinator] {
          return MetricsText(
              served.admin_.GetServer(),
              served.studies_.queries().ListStudies().value_or(std::vector<StudyStatus>()));
        }));
  }
  return coordinator;
}

absl::Status Coordinator::Serve(const CoordinatorOptions& options) {
  RpcOptions rpc{.listen = AddressesOf(options),
                 .tls = std::nullopt,
                 .tls_on_loopback = options.security.tls_on_loopback};
  const std::optional<size_t> place = PlaceOfTls(options);
  IssuerOptions issuer{.folder = FolderOfAccess(options), .certificate = {}, .host = ""};
  if (place) {
    HPO_ASSIGN_OR_RETURN(GateOptions gate,
                         LoadGate(options, rpc.listen[*place].host, clock_.Now()));
    issuer.certificate = tls::CertificateDigest(gate.identity.Anchor());
    rpc.tls = std::move(gate);
  }
  const RpcApis apis{.studies = studies_,
                     .workers = workers_,
                     .admin = admin_,
                     .fleet = fleet_,
                     .analysis = analysis_,
                     .optuna = optuna_,
                     .access = access_,
                     .tokens = *tokens_};
  HPO_ASSIGN_OR_RETURN(rpc_, RpcServer::Start(std::move(rpc), apis));
  if (!place) return ServePage(options, "");
  SetAdvertised(options.security, rpc_->addresses()[*place], issuer);
  issuer_ = std::make_unique<TokenIssuer>(std::move(issuer), *tokens_, clock_,
                                          [this](uint64_t asking) { rpc_->CloseInvalid(asking); });
  admin_.SetIssuer(issuer_.get());
  HPO_RETURN_IF_ERROR(issuer_->MakeFirstTokens());
  HPO_RETURN_IF_ERROR(issuer_->RefreshFiles());
  return ServePage(options, AddressesOf(options)[*place].host);
}

absl::Status Coordinator::ServePage(const CoordinatorOptions& options,
                                    const std::string& tls_host) {
  if (!options.http) return absl::OkStatus();
  const bool needs_tls =
      !options.security.insecure && NeedsTls(*options.http, options.security.tls_on_loopback);
  if (needs_tls && issuer_ == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--http ", FormatListenAddress(*options.http),
        ": other machines can reach this address, so that the page needs TLS and the tokens of "
        "--listen; add --tls, or a --listen that other machines can reach"));
  }
  IssuerOptions advertised;
  SetAdvertised(options.security, *options.http, advertised);
  PageOptions page{.listen = *options.http,
                   .identity = nullptr,
                   .key_folder = FolderOfAccess(options),
                   .names = NamesOf(advertised.host)};
  std::optional<tls::Identity> identity;
  if (needs_tls) {
    HPO_ASSIGN_OR_RETURN(identity, LoadIdentityFor(options, tls_host, clock_.Now()));
    page.identity = &*identity;
  }
  HPO_ASSIGN_OR_RETURN(
      page_, PageServer::Start(page, {.channel = rpc_->ChannelWithin(),
                                      .queries = studies_.queries(),
                                      .access = access_,
                                      .tokens = *tokens_,
                                      .clock = clock_,
                                      .trouble = [this] { return admin_.GetServer().trouble; }}));
  admin_.SetPage(page_->url());
  table_reader_ = std::thread([this] {
    studies_.queries().tables().ReadAll([this] { return scheduler_->state().work.draining(); });
  });
  return absl::OkStatus();
}

std::string Coordinator::join_file() const {
  return issuer_ == nullptr ? "" : issuer_->FileOf(std::string(RoleName(Role::kWork)));
}

void Coordinator::LookAtHealth() {
  rpc_->CloseInvalid();
  const std::string trouble = admin_.GetServer().trouble;
  if (const auto line = health_log_.Look(trouble, clock_.Monotonic())) {
    spdlog::log(trouble.empty() ? spdlog::level::info : spdlog::level::err, "{}", *line);
  }
  rpc_->SetServing(trouble.empty());
}

Coordinator::~Coordinator() {
  Drain(absl::ZeroDuration());
  if (mlflow_ != nullptr) mlflow_->Finish(absl::ZeroDuration());
}

void Coordinator::Drain(absl::Duration grace) {
  if (rpc_ != nullptr) rpc_->StopAdvertising();
  scheduler_->state().work.Drain();
  if (table_reader_.joinable()) table_reader_.join();
  if (page_ != nullptr) page_->Stop();
  if (rpc_ != nullptr) rpc_->Shutdown(grace);
  if (mlflow_ != nullptr) mlflow_->Finish(grace);
}

}  // namespace hpo::server
