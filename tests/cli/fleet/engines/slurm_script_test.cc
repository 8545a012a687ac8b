#include "cli/fleet/engines/slurm_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

FleetPlan ToyPlan() {
  FleetPlan plan{.name = "toy", .study = "toy", .workers = 8, .folder = "/home/me/fleets/toy"};
  plan.server.address = "10.0.0.1:50051";
  return plan;
}

// Whether bash can read it.
bool IsBash(const std::string& script) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/script";
  std::ofstream(path) << script;
  return std::system(absl::StrCat("bash -n ", path).c_str()) == 0;
}

TEST(SlurmScript, AsksForOneTaskAWorker) {
  FleetPlan plan = ToyPlan();
  plan.max_running = 4;
  plan.cpus_per_worker = 6;
  plan.memory_per_worker = GiB(32);
  plan.time = absl::Hours(8);
  plan.engine_options = {"--partition=gpu", "--account=vision"};
  const std::string script = SlurmScript(plan, "/env/bin/hpo-worker");
  for (const char* const line :
       {"#SBATCH --job-name=hpo-toy\n", "#SBATCH --array=0-7%4\n", "#SBATCH --gres=gpu:1\n",
        "#SBATCH --cpus-per-task=6\n", "#SBATCH --mem=32768M\n", "#SBATCH --time=08:00:00\n",
        "#SBATCH --partition=gpu\n#SBATCH --account=vision\n", "#SBATCH --requeue\n",
        "#SBATCH --open-mode=append\n", "#SBATCH --signal=USR1@180\n",
        "export HPO_SERVER=10.0.0.1:50051\n", "SRUN_CPUS_PER_TASK", "  --gpu visible\n"}) {
    EXPECT_THAT(script, HasSubstr(line));
  }
  EXPECT_TRUE(IsBash(script)) << script;
}

TEST(SlurmScript, AsksForNoGresWithoutGpus) {
  FleetPlan plan = ToyPlan();
  plan.gpus_per_worker = 0;
  plan.memory_per_worker = GiB(2);
  const std::string script = SlurmScript(plan, "hpo-worker");
  EXPECT_THAT(script, Not(HasSubstr("--gres")));
  EXPECT_THAT(script, HasSubstr("--device cpu\n"));
  plan = ToyPlan();
  plan.gpu_type = "a100";
  plan.gpus_per_worker = 2;
  EXPECT_THAT(SlurmScript(plan, "hpo-worker"), HasSubstr("#SBATCH --gres=gpu:a100:2\n"));
}

TEST(SlurmScript, NamesTheFileOfTheSecretAndNeverTheSecret) {
  FleetPlan plan = ToyPlan();
  plan.server = {.join = "hpo1.hash.SECRET@host:50051"};
  std::string script = SlurmScript(plan, "hpo-worker");
  EXPECT_THAT(script, HasSubstr("export HPO_JOIN_FILE=/home/me/fleets/toy/join\n"));
  EXPECT_THAT(script, Not(HasSubstr("SECRET")));
  EXPECT_THAT(script, Not(HasSubstr("HPO_SERVER")));
  plan.server = {.join_file = "/home/me/my join"};
  EXPECT_THAT(SlurmScript(plan, "hpo-worker"),
              HasSubstr("export HPO_JOIN_FILE='/home/me/my join'\n"));
}

TEST(SlurmScript, KeepsOddTextsWhereTheyBelong) {
  FleetPlan plan = ToyPlan();
  plan.setup = {"module load cuda", "export A='x\ny'"};
  plan.worker_options = {"--trainer", "python t.py --lr {train.lr} 'a b' $HOME"};
  const std::string script = SlurmScript(plan, "/a b/hpo-worker");
  EXPECT_TRUE(IsBash(script)) << script;
  EXPECT_THAT(script, HasSubstr("\nmodule load cuda\nexport A='x\ny'\n"));
  EXPECT_THAT(script, HasSubstr("  --trainer 'python t.py --lr {train.lr} '\\''a b'\\'' $HOME'\n"));
  // A newline in an option must not end the comment that repeats it.
  EXPECT_THAT(script, Not(HasSubstr("\ny'\\'''")));
}

TEST(SignalSeconds, AreLessForAShortLimit) {
  FleetPlan plan = ToyPlan();
  EXPECT_EQ(SignalSeconds(plan), 180);
  plan.time = absl::Hours(8);
  EXPECT_EQ(SignalSeconds(plan), 180);
  plan.time = absl::Minutes(2);
  EXPECT_EQ(SignalSeconds(plan), 30);
}

std::string SlurmComplaint(const absl::Status& status) {
  return status.ok() ? "" : std::string(status.message());
}

TEST(CheckSlurmWords, TakesOptionsOfSbatch) {
  FleetPlan plan;
  plan.gpu_type = "a100_3g.20gb";
  plan.engine_options = {"--partition=gpu,long-2", "--account=vision", "-A vision"};
  EXPECT_EQ(SlurmComplaint(CheckSlurmWords(plan)), "");
}

TEST(CheckSlurmWords, RejectsWhatWouldBeNoOption) {
  FleetPlan plan;
  plan.engine_options = {"account=vision"};
  EXPECT_EQ(SlurmComplaint(CheckSlurmWords(plan)),
            "--option: expected an option of sbatch, such as --option=--account=vision, got "
            "'account=vision'");
  for (const char* const partition : {"a b;rm", "a,", "'a'", "a#b"}) {
    plan.engine_options = {absl::StrCat("--partition=", partition)};
    EXPECT_THAT(SlurmComplaint(CheckSlurmWords(plan)), HasSubstr("--partition: expected the name"))
        << partition;
  }
  plan.engine_options.clear();
  plan.gpu_type = "a100:2 x";
  EXPECT_THAT(SlurmComplaint(CheckSlurmWords(plan)), HasSubstr("--gpu-type: expected"));
}

}  // namespace
}  // namespace hpo::cli
