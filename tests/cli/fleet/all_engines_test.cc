#include "cli/fleet/all_engines.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "tests/cli/run_program.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::cli {
namespace {

// Programs of engines that do as they are told.
class WithEngines : public testing::Test {
 protected:
  // What is installed, and nothing else.
  void SetUp() override {
    setenv("PATH", folder_.path().c_str(), 1);
    setenv("XDG_STATE_HOME", folder_.path().c_str(), 1);
  }
  void TearDown() override { setenv("PATH", path_.c_str(), 1); }
  void Install(const std::string& program, const std::string& does) {
    const std::string path = folder_.path() + "/" + program;
    std::ofstream(path) << "#!/bin/sh\n" << does << "\n";
    chmod(path.c_str(), 0755);
  }

  TemporaryFolder folder_;
  const std::string path_ = std::getenv("PATH");
};

TEST_F(WithEngines, AFleetIsNotGoneWhereAnEngineCannotBeAsked) {
  Install("squeue", "exit 0");
  Install("kubectl", "echo 'no route to host' >&2; exit 1");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"fleet", "status", "toy"},
                                                {"fleet", "stop", "toy"},
                                                {"fleet", "scale", "toy", "--workers", "3"}}) {
    ExpectRefused(
        words, 5,
        "could not ask kubernetes: Kubernetes's kubectl failed: no route to host; whether "
        "fleet toy is there is not known");
  }
  Install("kubectl", R"(echo '{"items": []}')");
  ExpectRefused({"fleet", "status", "toy"}, 3, "no fleet toy on slurm, kubernetes");
}

}  // namespace
}  // namespace hpo::cli
