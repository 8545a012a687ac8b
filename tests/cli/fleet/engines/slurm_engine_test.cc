#include "cli/fleet/engines/slurm_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "cli/fleet/engines/engine_steps.h"
#include "common/files/read_file.h"
#include "tests/cli/fleet/engines/engine_test.h"

namespace hpo::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kTwo[] = "6_0|RUNNING|n1|0:31|None|hpo-toy\n6_1|PENDING||0:00|Resources|hpo-toy\n";

// scontrol, which writes the script of a job to the file that its last word names.
EngineMeans WithScript(FakePrograms& programs, const std::string& script) {
  EngineMeans means = programs.means();
  means.run = [run = means.run, script](const ProgramCall& call) {
    if (call.words[0] == "scontrol") std::ofstream(call.words.back()) << script;
    return run(call);
  };
  return means;
}

class SlurmEngineTest : public EngineTest {
 protected:
  SlurmEngine engine_{programs_.means(), "/bin/hpo-worker", "me"};
};

TEST_F(SlurmEngineTest, SubmitsTheScriptThatItKeeps) {
  programs_.Add("squeue", {});
  programs_.Add("sbatch", {.output = "17;cluster\n"});
  const auto submitted = engine_.Submit(Plan());
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->id, "17");
  EXPECT_EQ(programs_.calls.back(), "sbatch --parsable " + submitted->kept);
  EXPECT_EQ(ReadFile(submitted->kept).value(), engine_.Script(Plan()).value());
}

TEST_F(SlurmEngineTest, KeepsTheSecretInAFileOfItsOwnersAlone) {
  programs_.Add("squeue", {});
  programs_.Add("sbatch", {.output = "17\n"});
  const FleetPlan plan = PlanWithSecret();
  ASSERT_TRUE(engine_.Submit(plan).ok());
  const std::string file = plan.folder + "/join";
  struct stat facts {};
  ASSERT_EQ(stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  std::string line;
  std::getline(std::ifstream(file), line);
  EXPECT_EQ(line, "hpo1.hash.SECRET@host:50051");
  EXPECT_THAT(programs_.calls, testing::Each(Not(HasSubstr("SECRET"))));
}

TEST_F(SlurmEngineTest, SubmitsNoSecondFleetOfAName) {
  programs_.Add("squeue", {.output = kTwo});
  const auto submitted = engine_.Submit(Plan());
  EXPECT_TRUE(absl::IsAlreadyExists(submitted.status()));
  EXPECT_THAT(std::string(submitted.status().message()),
              HasSubstr("hpo fleet scale toy --workers 2"));
}

TEST_F(SlurmEngineTest, TellsWhatGresThereAreIfSlurmLacksThem) {
  programs_.Add("squeue", {});
  programs_.Add("sbatch",
                {.status = 1,
                 .errors = "sbatch: error: Batch job submission failed: Invalid generic resource "
                           "(gres) specification\n"});
  programs_.Add("sinfo", {.output = "(null)\n"});
  const absl::Status status = engine_.Submit(Plan()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("Invalid generic resource"),
                                                   HasSubstr("the GRES of this cluster are: none"),
                                                   HasSubstr("--gpus-per-worker 0")));
}

TEST_F(SlurmEngineTest, SaysWhereSlurmsProgramsAreIfTheyAreMissing) {
  const absl::Status status = engine_.Submit(Plan()).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("squeue is not in PATH"), HasSubstr("login node")));
}

TEST_F(SlurmEngineTest, PassesOnWhatSlurmSays) {
  programs_.Add("squeue",
                {.status = 1,
                 .errors = "squeue: error: slow\nslurm_load_jobs error: Unable to contact "
                           "slurm controller\n"});
  const absl::Status status = engine_.List("").status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Unable to contact slurm controller"));
}

TEST_F(SlurmEngineTest, TakesNoLineOfShellThatBashRejects) {
  programs_.Add("bash", {.status = 1, .errors = "bash: line 2: unexpected EOF\n"});
  FleetPlan plan = Plan();
  plan.setup = {"module load \"x"};
  const absl::Status status = engine_.Script(plan).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "--setup: expected a line of shell, got 'module load \"x' (line 2: unexpected EOF)");
  EXPECT_EQ(programs_.calls.back(), "bash -n -c module load \"x");
}

TEST_F(SlurmEngineTest, WaitsForAListForSoLongAlone) {
  programs_.Add("squeue", {});
  EXPECT_TRUE(engine_.List("").ok());
  EXPECT_EQ(programs_.patience.back(), kListPatience);
}

TEST_F(SlurmEngineTest, GrowsByTheScriptThatSlurmHas) {
  programs_.Add("squeue", {.output = kTwo});
  programs_.Add("scontrol", {});
  programs_.Add("sbatch", {.output = "18\n"});
  SlurmEngine engine(WithScript(programs_, "#!/bin/bash\n"), "/bin/hpo-worker", "me");
  const auto done = engine.Scale("toy", 5);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(*done, "submitted 3 workers more");
  EXPECT_THAT(programs_.calls,
              ElementsAre(HasSubstr("--name=hpo-toy"), StartsWith("scontrol write batch_script 6 "),
                          StartsWith("sbatch --parsable --array=0-2 ")));
}

TEST_F(SlurmEngineTest, KeepsTheLimitOfThoseThatRunWhenItGrows) {
  struct Case {
    const char* limit;
    int workers;
    const char* options;
  };
  // Two tasks wait or run.
  const Case cases[] = {
      {"", 5, "--array=0-2 "},
      {"%8", 5, "--array=0-2 "},
      {"%4", 5, "--array=0-2%2 "},
      {"%2", 5, "--array=0-2%2 --dependency=afterany:6 "},
      {"%1", 3, "--array=0-0%1 --dependency=afterany:6 "},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.limit);
    FakePrograms programs;
    programs.Add("squeue", {.output = kTwo});
    programs.Add("scontrol", {});
    programs.Add("sbatch", {.output = "18\n"});
    SlurmEngine engine(
        WithScript(programs, absl::StrCat("#!/bin/bash\n#SBATCH --array=0-1", each.limit, "\n")),
        "/bin/hpo-worker", "me");
    ASSERT_TRUE(engine.Scale("toy", each.workers).ok());
    EXPECT_THAT(programs.calls.back(),
                StartsWith(absl::StrCat("sbatch --parsable ", each.options, "/")));
  }
}

TEST_F(SlurmEngineTest, ShrinksByThoseThatWaitFirst) {
  programs_.Add("squeue", {.output = kTwo});
  programs_.Add("scancel", {});
  ASSERT_TRUE(engine_.Scale("toy", 1).ok());
  EXPECT_EQ(programs_.calls.back(), "scancel 6_1");
}

TEST_F(SlurmEngineTest, ScalesNothingThatIsNotThere) {
  programs_.Add("squeue", {});
  EXPECT_TRUE(absl::IsNotFound(engine_.Scale("toy", 1).status()));
  EXPECT_TRUE(absl::IsNotFound(engine_.Stop("toy", absl::Minutes(1))));
}

TEST_F(SlurmEngineTest, StopsUntilNothingIsLeft) {
  // A task that requeued itself when it was cancelled is cancelled again.
  programs_.Add("squeue", {.output = kTwo});
  programs_.Add("squeue", {.output = "6_0|COMPLETING|n1|0:31|None|hpo-toy\n"});
  programs_.Add("squeue", {.output = "6_0|PENDING||0:00|BeginTime|hpo-toy\n"});
  programs_.Add("squeue", {});
  programs_.Add("scancel", {});
  EXPECT_TRUE(engine_.Stop("toy", absl::Minutes(1)).ok());
  EXPECT_THAT(
      programs_.calls,
      ElementsAre(StartsWith("squeue"), "scancel --user=me --name=hpo-toy", StartsWith("squeue"),
                  StartsWith("squeue"), "scancel --user=me --name=hpo-toy", StartsWith("squeue")));
}

TEST_F(SlurmEngineTest, TellsWhatIsLeftWhenItsTimeIsOver) {
  programs_.Add("squeue", {.output = "6_0|COMPLETING|n1|0:31|None|hpo-toy\n"});
  const absl::Status status = engine_.Stop("toy", absl::Seconds(3));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("6_0 on n1"));
  EXPECT_EQ(programs_.num_pauses, 3);
}

TEST_F(SlurmEngineTest, EndsItsWaitAtAnInterrupt) {
  programs_.Add("squeue", {.output = kTwo});
  programs_.Add("scancel", {});
  programs_.is_interrupted = true;
  EXPECT_TRUE(absl::IsDeadlineExceeded(engine_.Stop("toy", absl::Hours(1))));
  EXPECT_EQ(programs_.num_pauses, 1);
}

}  // namespace
}  // namespace hpo::cli
