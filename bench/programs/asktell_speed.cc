// A client of ours in C++, for bench/sdk_throughput and bench/security: asktell_speed ADDRESS STUDY
// [WORKERS]; HPO_JOIN beats ADDRESS as it does for a worker. Each line on standard input is a
// number of trials. Each of the workers (1) acquires and finishes that number of trials, one after
// the other, and a line says the seconds that all of it took and the milliseconds of each trial.
// The study's parameters are lr, layers and kind.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/tls/server_route.h"
#include "worker/agent/session/coordinator_client.h"
#include "worker/agent/session/grpc_coordinator_client.h"

namespace hpo {
namespace {

using Clock = std::chrono::steady_clock;

// value_of in bench/sdk_throughput.
double ValueOf(const ParamMap& params) {
  return std::abs(AsNumber(params.at("lr")).value() - 0.01) +
         std::abs(AsNumber(params.at("layers")).value() - 5) / 10 +
         (std::get<std::string>(params.at("kind")) == "b" ? 0.3 : 0.0);
}

absl::Status AskAndTell(agent::CoordinatorClient& client, const std::string& session) {
  const auto asked =
      client.AcquireTrial(session, RandomId(), absl::Seconds(5), Bytes(), [] { return false; });
  if (!asked.ok()) return asked.status();
  if (!asked->assignment.has_value()) {
    return absl::UnavailableError(absl::StrCat("no trial within 5 s: ", asked->waiting_for));
  }
  FinishRequest request{.lease = asked->assignment->lease,
                        .final_plan = asked->assignment->task.plan};
  request.outcome = Completed{.metrics = {{"value", ValueOf(asked->assignment->task.params)}}};
  return client.FinishTrial(session, RandomId(), request).status();
}

// A worker with a connection of its own.
struct Worker {
  tls::ServerRoute route;
  std::unique_ptr<agent::CoordinatorClient> client;
  std::string session;
};

absl::StatusOr<Worker> Register(const std::string& address, const std::string& study, int number) {
  Worker worker;
  HPO_ASSIGN_OR_RETURN(const auto join, tls::JoinSource::Find(""));
  HPO_ASSIGN_OR_RETURN(worker.route, tls::FindRoute(join, address));
  worker.client = agent::ConnectCoordinator(worker.route);
  // Several may run at once, each as a worker of its own.
  WorkerFacts facts{.worker = absl::StrCat("asktell_speed-", getpid(), "-", number),
                    .instance_key = RandomId(),
                    .trainer = "none"};
  facts.plans = false;
  facts.device.kind = "cpu";
  facts.serves = {study};
  absl::StatusOr<Registration> registered = worker.client->RegisterWorker(facts, "");
  for (int tries = 0; !registered.ok() && agent::IsServerAway(registered.status()) && tries < 100;
       ++tries) {
    registered = worker.client->RegisterWorker(facts, "");
  }
  if (!registered.ok()) return registered.status();
  worker.session = registered->session;
  return worker;
}

// The milliseconds of each trial, one after the other.
absl::StatusOr<std::string> TrialsOf(const Worker& worker, int trials) {
  std::string each;
  for (int i = 0; i < trials; ++i) {
    const auto before = Clock::now();
    HPO_RETURN_IF_ERROR(AskAndTell(*worker.client, worker.session));
    const std::chrono::duration<double, std::milli> taken = Clock::now() - before;
    absl::StrAppend(&each, " ", taken.count());
  }
  return each;
}

// "1.5 0.7 0.8": the seconds until all workers have done `trials` each, all at once, then the
// milliseconds of each trial.
absl::StatusOr<std::string> TimesOf(const std::vector<Worker>& workers, int trials) {
  std::vector<absl::StatusOr<std::string>> times(workers.size());
  std::vector<std::thread> threads;
  const auto begin = Clock::now();
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.emplace_back([&, i] { times[i] = TrialsOf(workers[i], trials); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> taken = Clock::now() - begin;
  std::string all = absl::StrCat(taken.count());
  for (const absl::StatusOr<std::string>& one : times) {
    if (!one.ok()) return one.status();
    all += *one;
  }
  return all;
}

absl::Status Run(const std::string& address, const std::string& study, int num_workers) {
  std::vector<Worker> workers;
  for (int i = 0; i < num_workers; ++i) {
    HPO_ASSIGN_OR_RETURN(workers.emplace_back(), Register(address, study, i));
  }
  for (int trials = 0; std::cin >> trials;) {
    HPO_ASSIGN_OR_RETURN(const std::string times, TimesOf(workers, trials));
    std::cout << times << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace hpo

int main(int argc, char** argv) {
  int num_workers = 1;
  const bool valid =
      argc == 3 || (argc == 4 && absl::SimpleAtoi(argv[3], &num_workers) && num_workers > 0);
  if (!valid) {
    std::fprintf(stderr, "usage: asktell_speed ADDRESS STUDY [WORKERS]\n");
    return 64;
  }
  const absl::Status status = hpo::Run(argv[1], argv[2], num_workers);
  if (status.ok()) return 0;
  std::fprintf(stderr, "asktell_speed: %s\n", std::string(status.message()).c_str());
  return 1;
}
