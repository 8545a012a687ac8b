// A client of ours in C++, for bench/sdk_throughput: asktell_speed ADDRESS STUDY. Each line on
// standard input is a number of trials; it asks for and tells so many, one after the other, and
// prints the seconds that they took. The study's parameters are lr, layers and kind.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "worker/agent/session/coordinator_client.h"
#include "worker/agent/session/grpc_coordinator_client.h"

namespace hpo {
namespace {

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

absl::StatusOr<double> SecondsOf(agent::CoordinatorClient& client, const std::string& session,
                                 int trials) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < trials; ++i) {
    if (absl::Status status = AskAndTell(client, session); !status.ok()) return status;
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return taken.count();
}

absl::Status Run(const std::string& address, const std::string& study) {
  const std::unique_ptr<agent::CoordinatorClient> client = agent::ConnectCoordinator(address);
  // Several may run at once, each as a worker of its own.
  WorkerFacts facts{.worker = absl::StrCat("asktell_speed-", getpid()),
                    .instance_key = RandomId(),
                    .trainer = "none"};
  facts.plans = false;
  facts.device.kind = "cpu";
  facts.serves = {study};
  absl::StatusOr<Registration> registered = client->RegisterWorker(facts, "");
  for (int tries = 0; !registered.ok() && agent::IsServerAway(registered.status()) && tries < 100;
       ++tries) {
    registered = client->RegisterWorker(facts, "");
  }
  if (!registered.ok()) return registered.status();
  for (int trials = 0; std::cin >> trials;) {
    const absl::StatusOr<double> seconds = SecondsOf(*client, registered->session, trials);
    if (!seconds.ok()) return seconds.status();
    std::cout << *seconds << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace hpo

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: asktell_speed ADDRESS STUDY\n");
    return 64;
  }
  const absl::Status status = hpo::Run(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "asktell_speed: %s\n", std::string(status.message()).c_str());
  return 1;
}
