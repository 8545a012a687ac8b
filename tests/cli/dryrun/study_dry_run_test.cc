#include "cli/dryrun/study_dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/files/read_file.h"
#include "tests/cli/run_program.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kSizesStudy[] = R"(
name: sizes
objective: {metric: loss, direction: minimize}
budget: {trials: 10}
trainer: {command: [python3, train.py, "{args}"]}
parameters:
  batch: {int: [1, 8]}
  layers: {choices: [2, 4, 6, 8, 10, 12]}
  lr: {float: [1.0e-5, 1.0e-3], log: true, default: 0.0003}
)";

// In place of python3: a dry run of a program that takes 1 GiB for each layer and 200 MiB for each
// row of a batch in each layer, on GPUs of 8 and 24 GiB. Its words are noted.
constexpr char kFakePackage[] = R"(#!/bin/sh
echo "$*" >> "$RECORD"
text="$*"
value() { echo "$text" | sed -n "s/.*--$1[ =]\([0-9a-z]*\).*/\1/p"; }
batch=$(value batch); layers=$(value layers)
%s
required=$((layers * 1073741824 + layers * batch * 209715200))
gpu() {
  verdict=fits; needs=null
  [ $((required + 524288000)) -gt $2 ] && verdict=tight
  [ $required -gt $2 ] && verdict="does not fit" && needs=$required
  printf '{"gpu": "%%s", "verdict": "%%s", "total_bytes": %%s, "required_bytes": %%s, ' \
      $1 "$verdict" $2 $required
  printf '"needs_bytes": %%s, "margin_bytes": 524288000, "retries": 0}' $needs
}
echo "a warning"
echo "{\"gpus\": [$(gpu small 8589934592), $(gpu large 25769803776)]}"
)";

class StudyDryRunTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("hpo-study-dry-run-" + std::to_string(getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    setenv("PATH", (folder_.string() + ":" + path_).c_str(), /*overwrite=*/1);
    setenv("RECORD", (folder_ / "record").c_str(), /*overwrite=*/1);
    std::ofstream(folder_ / "sizes.yaml") << kSizesStudy;
    WritePackage("");
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), /*overwrite=*/1);
    std::filesystem::remove_all(folder_);
  }

  // `first` is run by the shell before the document is written.
  void WritePackage(const std::string& first) const {
    const std::filesystem::path file = folder_ / "python3";
    std::string text(kFakePackage);
    text.replace(text.find("%s\n"), 2, first);
    for (size_t at = text.find("%%"); at != std::string::npos; at = text.find("%%")) {
      text.replace(at, 2, "%");
    }
    std::ofstream(file) << text;
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  std::vector<std::string> Words(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"memory", "dry-run", folder_ / "sizes.yaml", "--gpu",
                                      "small,large"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Runs it with its standard error, which is the process's own.
  ProgramResult Run(const std::vector<std::string>& more) const {
    testing::internal::CaptureStderr();
    ProgramResult result = RunProgram(Words(more));
    result.err += testing::internal::GetCapturedStderr();
    return result;
  }
  std::string Record() const { return ReadFile((folder_ / "record").string()).value_or(""); }

  std::filesystem::path folder_;
  const std::string path_ = std::getenv("PATH");
};

TEST_F(StudyDryRunTest, DrawsTheFrontierFromAFewRuns) {
  const ProgramResult result =
      Run({"--", "python3", "train.py", "--batch", "{batch}", "--layers", "{layers}"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("study sizes: 48 configurations of batch, layers; "));
  EXPECT_THAT(result.out, HasSubstr(", the others are concluded"));
  EXPECT_THAT(result.out, HasSubstr("small"));
  EXPECT_THAT(result.out, HasSubstr("batch \\ layers"));
  EXPECT_THAT(result.err,
              HasSubstr("batch=1 layers=2: small fits, 2.39 GiB; large fits, 2.39 GiB"));
  EXPECT_THAT(Record(),
              HasSubstr("--json --gpu small,large -- /bin/sh -c python3 train.py --batch 1 "
                        "--layers 2\n"));
}

TEST_F(StudyDryRunTest, ConclusionsAreWhatRunsWouldSay) {
  const auto found = nlohmann::json::parse(
      Run({"--json", "--jobs", "3", "--", "train.sh", "--batch={batch}", "--layers={layers}"}).out);
  EXPECT_EQ(found["configurations"].size(), 48u);
  EXPECT_LE(found["dry_runs"], 24);
  int concluded = 0;
  for (const auto& one : found["configurations"]) {
    const int64_t layers = one["params"]["layers"];
    const int64_t batch = one["params"]["batch"];
    const Bytes required = GiB(layers) + MiB(layers * batch * 200);
    concluded += one["source"] == "concluded" ? 1 : 0;
    EXPECT_EQ(one["gpus"][0]["verdict"] == "does not fit", required > GiB(8)) << one;
    EXPECT_EQ(one["gpus"][1]["verdict"] == "does not fit", required > GiB(24)) << one;
    EXPECT_NE(one["gpus"][0]["verdict"], "not known") << one;
  }
  EXPECT_EQ(concluded, 48 - static_cast<int>(found["dry_runs"]));
  EXPECT_EQ(found["chart"], (nlohmann::json{"layers", "batch"}));
  EXPECT_EQ(found["gpus"][0]["cut"]["parameter"], "layers");
}

TEST_F(StudyDryRunTest, TakesTheStudysOwnCommandAndChart) {
  const ProgramResult result = Run({"--parameters", "batch", "--sample", "6"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(Record(), HasSubstr("python3 train.py --batch=1 --layers=2 --lr=3e-04"));
  EXPECT_THAT(result.out, HasSubstr("; 6 dry runs"));
  EXPECT_THAT(result.out, HasSubstr("\nbatch"));
  EXPECT_THAT(result.out, HasSubstr("/6"));
}

TEST_F(StudyDryRunTest, RunsAllWhereAskedTo) {
  const auto found = nlohmann::json::parse(Run({"--json", "--sample", "all", "--jobs", "4", "--",
                                                "train.sh", "--batch={batch}", "--layers=2"})
                                               .out);
  EXPECT_EQ(found["configurations"].size(), 8u) << "the command does not show the layers";
  EXPECT_EQ(found["dry_runs"], 8);
}

TEST_F(StudyDryRunTest, AnErrorOfOneConfigurationDoesNotEndTheRest) {
  WritePackage("[ $batch = 8 ] && echo 'hpo memory dry-run: the program failed' >&2 && exit 1");
  const ProgramResult result =
      Run({"--jobs", "2", "--", "a.sh", "--batch={batch} --layers={layers}"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(" cannot be dry-run:\n  batch=8 layers="));
  EXPECT_THAT(result.out, HasSubstr(": the program failed\n"));
}

TEST_F(StudyDryRunTest, EndsWhereAllFailAlike) {
  WritePackage("echo 'hpo memory dry-run: no torch' >&2; exit 1");
  const ProgramResult result = Run({"--", "a.sh", "{batch}", "{layers}"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err,
              HasSubstr("hpo: the first 5 configurations cannot be dry-run: no torch\n"));
  EXPECT_EQ(result.out, "");
}

TEST_F(StudyDryRunTest, AMissingStudyIsNoVerdict) {
  const ProgramResult result =
      RunProgram({"memory", "dry-run", folder_ / "no_such.yaml", "--gpu", "t4"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("no_such.yaml"));
}

TEST_F(StudyDryRunTest, TheListOfGpusIsNoGpu) {
  const ProgramResult result = Run({"--gpu", "list"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("hpo memory dry-run --gpu list, without a study"));
  EXPECT_EQ(Record(), "");
}

TEST_F(StudyDryRunTest, AMachineHasTheGpusThatATrialTakes) {
  std::string study = kSizesStudy;
  study.replace(study.find("trainer: {"), 10, "trainer: {gpus: 4, ");
  std::ofstream(folder_ / "sizes.yaml") << study;
  const std::vector<std::string> command = {"--", "a.sh", "--batch={batch}", "--layers={layers}",
                                            "--ranks={gpus}"};
  Run(command);
  EXPECT_THAT(Record(), HasSubstr("--json --count 4 --gpu small,large -- "));
  EXPECT_THAT(Record(), HasSubstr("--ranks=4"));
}

TEST_F(StudyDryRunTest, EndsAtOnceWhereTheWordsAreWrong) {
  WritePackage("echo \"hpo memory dry-run: --gpu: no GPU 'small'\" >&2; exit 2");
  const ProgramResult result = Run({"--", "a.sh", "{batch}", "{layers}"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err, "hpo: --gpu: no GPU 'small'\n");
}

TEST_F(StudyDryRunTest, NothingFits) {
  const ProgramResult result = Run({"--", "a.sh", "--batch={batch}", "--layers=100"});
  EXPECT_EQ(result.status, 3) << result.out;
  EXPECT_THAT(result.out, HasSubstr("X"));
  EXPECT_THAT(result.out, Not(HasSubstr("F  ")));
}

TEST_F(StudyDryRunTest, AnInterruptShowsWhatWasRunBefore) {
  WritePackage("[ $(wc -l < \"$RECORD\") = 3 ] && kill -INT " + std::to_string(getpid()) +
               " && exec sleep 60");
  const ProgramResult result = Run({"--", "a.sh", "--batch={batch}", "--layers={layers}"});
  EXPECT_EQ(result.status, 130);
  EXPECT_THAT(result.out, HasSubstr("; 2 dry runs"));
  EXPECT_THAT(result.out, HasSubstr("\ninterrupted: "));
}

TEST_F(StudyDryRunTest, NamesWhatIsWrong) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--", "a.sh", "{bach}"}, "did you mean {batch}?"},
      {{"--parameters", "bach", "--", "a.sh", "{batch}"}, "got 'bach'; did you mean 'batch'?"},
      {{"--sample", "few"}, "expected a number of at least 1, or all, got 'few'"},
      {{"--largest", "batch=1:8"}, "no option --largest"}};
  for (const auto& [words, error] : cases) {
    const ProgramResult result = Run(words);
    EXPECT_EQ(result.status, 2) << error;
    EXPECT_THAT(result.err, HasSubstr(error));
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(Record(), "");
}

TEST_F(StudyDryRunTest, WarnsOfAProgramThatSeesNoParameter) {
  EXPECT_THAT(Run({"--sample", "1", "--", "a.sh", "--batch=1", "--layers=2"}).err,
              HasSubstr("hpo: warning: the command has no placeholder such as {batch}"));
}

TEST_F(StudyDryRunTest, HelpFitsATerminal) {
  const ProgramResult result = RunProgram({"memory", "dry-run", "study.yaml", "--help"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("--parameters"));
}

}  // namespace
}  // namespace hpo::cli
