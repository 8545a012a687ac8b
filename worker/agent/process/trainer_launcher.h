// Starts trainer processes. An interface so that tests can start scripted ones, or none.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/agent/process/trainer_process.h"

namespace hpo::agent {

class TrainerLauncher {
 public:
  virtual ~TrainerLauncher() = default;

  // A new trainer whose output goes to `log_path`. Codes: TrainerProcess::Start. See there for the
  // thread that calls.
  virtual absl::StatusOr<std::unique_ptr<TrainerProcess>> Launch(const std::string& log_path) = 0;

  // What runs, for people and for the server: "hpo-trainer", or the user's command.
  virtual std::string Describe() const = 0;
};

// Runs one command, each time with the same environment and mark (TrainerCommand).
class CommandLauncher final : public TrainerLauncher {
 public:
  CommandLauncher(std::vector<std::string> argv, std::map<std::string, std::string> environment,
                  std::string mark, std::string description)
      : argv_(std::move(argv)),
        environment_(std::move(environment)),
        mark_(std::move(mark)),
        description_(std::move(description)) {}

  absl::StatusOr<std::unique_ptr<TrainerProcess>> Launch(const std::string& log_path) override {
    return TrainerProcess::Start(
        {.argv = argv_, .environment = environment_, .log_path = log_path, .mark = mark_});
  }

  std::string Describe() const override { return description_; }

 private:
  std::vector<std::string> argv_;
  std::map<std::string, std::string> environment_;
  std::string mark_;
  std::string description_;
};

}  // namespace hpo::agent
