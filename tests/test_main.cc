// The main of every test program: GoogleTest's, and `--file=PATH`, which runs the tests of one
// source file, named from the repository's root, but for those that GTEST_FILTER leaves out. ctest
// has an entry for each file, so that a program starts once a file and not once a test: loading
// torch takes longer than most tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fakes/temporary_folder.h"

namespace {

constexpr std::string_view kFileOption = "--file=";
constexpr std::string_view kTestFile = "_test.cc";

std::vector<const testing::TestInfo*> AllTests() {
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  std::vector<const testing::TestInfo*> tests;
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) tests.push_back(suite.GetTestInfo(j));
  }
  return tests;
}

// GoogleTest's filter for the tests of `file`; "" if there is none. A test elsewhere than in a
// test file would be in no entry of ctest: it is named.
std::string FilterOf(std::string_view file) {
  std::string filter;
  for (const testing::TestInfo* const test : AllTests()) {
    const std::string_view path = test->file();
    const std::string name = std::string(test->test_suite_name()) + "." + test->name();
    if (!path.ends_with(kTestFile)) {
      std::fprintf(stderr, "%s: %s is not in a file named *%s, so that ctest would not run it\n",
                   test->file(), name.c_str(), kTestFile.data());
      return "";
    }
    // What the compiler was given as a path may be absolute or not (ccache makes it relative).
    if (path.ends_with(file)) filter += (filter.empty() ? "" : ":") + name;
  }
  if (filter.empty()) std::fprintf(stderr, "%s: no test is in this file\n", file.data());
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with(kFileOption)) continue;
    const std::string filter = FilterOf(word.substr(kFileOption.size()));
    if (filter.empty()) return 1;
    const std::string given = GTEST_FLAG_GET(filter);
    const size_t left_out = given.find('-');
    GTEST_FLAG_SET(filter, filter + (left_out == given.npos ? "" : given.substr(left_out)));
  }
  // Two checkouts can test at once; programs that a test starts inherit its folder.
  const hpo::TemporaryFolder folder;
  setenv("TEST_TMPDIR", folder.path().c_str(), /*overwrite=*/1);  // testing::TempDir()
  setenv("TMPDIR", folder.path().c_str(), /*overwrite=*/1);
  return RUN_ALL_TESTS();
}
