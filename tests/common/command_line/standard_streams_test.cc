#include "common/command_line/standard_streams.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace hpo {
namespace {

TEST(FinishOutput, WhatCouldNotBeWrittenIsAnError) {
  std::ostringstream err;
  std::ostringstream good;
  good << "result";
  EXPECT_EQ(FinishOutput(good, err, 0), 0);
  EXPECT_EQ(FinishOutput(good, err, 3), 3);
  EXPECT_EQ(err.str(), "");
  std::ofstream full("/dev/full");
  full << "result";
  EXPECT_EQ(FinishOutput(full, err, 0), 1);
  EXPECT_EQ(err.str(), "hpo: cannot write to standard output: No space left on device\n");
  EXPECT_EQ(FinishOutput(full, err, 3), 3) << "what failed before is worse";
}

}  // namespace
}  // namespace hpo
