// Fails every k-th operation on the database's files, a study each. The last line is a JSON object.
#include <iostream>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"
#include "tests/chaos/faulty_files/fault_sweep.h"
#include "tests/chaos/simulation/simulation.h"

int main(int argc, char** argv) {
  CLI::App app("Every k-th operation on the database's files fails");
  hpo::SweepOptions options;
  app.add_option("--trials", options.num_trials, "of a study");
  app.add_option("--first", options.first, "the first k");
  app.add_option("--stride", options.stride, "1: every k");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::off);
  hpo::KeepDatabasesInMemory();
  const hpo::SweepResult swept = hpo::SweepFaults(options);
  for (const auto& [kind, faults] : swept.faults_by_kind) {
    std::cerr << kind << ": " << faults << " faults\n";
  }
  for (const std::string& line : swept.not_recovered) std::cerr << line << '\n';
  std::cout << nlohmann::json{{"faults", swept.num_studies},
                              {"calls_refused", swept.num_failed_calls},
                              {"not_recovered", swept.not_recovered.size()}}
                   .dump()
            << std::endl;
  return swept.not_recovered.empty() ? 0 : 3;
}
