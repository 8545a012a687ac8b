#include "cli/render/wrapped_output.h"

#include <gtest/gtest.h>

#include <sstream>

namespace hpo::cli {
namespace {

TEST(WrappedOutput, BreaksWholeLinesAndLeavesARedrawnOneAlone) {
  std::ostringstream to;
  {
    WrappedOutput buffer(to, 9);
    std::ostream out(&buffer);
    out << "one two "
        << "three\nfour";
    EXPECT_EQ(to.str(), "one two\n  three\n") << "a line is passed on once it is whole";
    out << std::flush << " five six\n";
    EXPECT_EQ(to.str(), "one two\n  three\nfour five six\n");
    out << "\r\x1b[Kprogress" << std::flush << "\r\x1b[Know a line" << std::endl;
    out << "rest";
  }
  EXPECT_EQ(to.str(),
            "one two\n  three\nfour five six\n\r\x1b[Kprogress\r\x1b[Know a\n  line\nrest");
}

TEST(WrappedOutput, SaysWhereNothingCanBeWritten) {
  std::ostringstream to;
  to.setstate(std::ios::badbit);
  WrappedOutput buffer(to, 9);
  std::ostream out(&buffer);
  out << "text" << std::endl;
  EXPECT_FALSE(out.good());
}

}  // namespace
}  // namespace hpo::cli
