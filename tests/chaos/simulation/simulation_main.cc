// Runs episodes of the simulation until `--events` random events have happened. The last line is a
// JSON object of what happened; for an episode that broke a rule, how to run it again.
#include <algorithm>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"
#include "tests/chaos/simulation/simulation.h"

namespace hpo {
namespace {

constexpr int64_t kTraceShown = 40;

void Describe(uint64_t seed, int64_t events, const EpisodeResult& episode) {
  const auto size = static_cast<int64_t>(episode.trace.size());
  for (int64_t i = std::max<int64_t>(0, size - kTraceShown); i < size; ++i) {
    std::cerr << episode.trace[static_cast<size_t>(i)] << '\n';
  }
  std::cerr << "violation: " << episode.violation.message()
            << "\nagain: scheduler_simulation --seed " << seed << " --episode " << events
            << " --events " << events << std::endl;
}

int Main(int argc, char** argv) {
  CLI::App app("Random events against the scheduler in virtual time");
  int64_t events = 1'000'000;
  int64_t episode_events = 4'000;
  uint64_t seed = 1;
  app.add_option("--events", events, "random events in all");
  app.add_option("--episode", episode_events, "random events with one database");
  app.add_option("--seed", seed, "of the first episode; each takes the next");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::off);
  KeepDatabasesInMemory();
  int64_t done = 0;
  int64_t told = 0;
  int64_t violations = 0;
  for (; done < events; ++seed) {
    const EpisodeResult episode = RunEpisode(seed, std::min(episode_events, events - done));
    done += episode.num_events;
    told += episode.num_told;
    if (episode.violation.ok()) continue;
    ++violations;
    Describe(seed, episode_events, episode);
  }
  std::cout
      << nlohmann::json{{"events", done}, {"results", told}, {"violations", violations}}.dump()
      << std::endl;
  return violations == 0 ? 0 : 3;
}

}  // namespace
}  // namespace hpo

int main(int argc, char** argv) { return hpo::Main(argc, argv); }
