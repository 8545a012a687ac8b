#include "server/server_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace hpo::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ServerOptionsTest : public testing::Test {
 protected:
  ServerOptionsTest() {
    setenv("XDG_STATE_HOME", "/state", 1);
    unsetenv("HPO_EPOCHS");
    unsetenv("HPO_TRIALS");
    unsetenv("HPO_MODEL_CHOICES");
  }

  std::optional<int> Read(std::vector<const char*> words) {
    words.insert(words.begin(), "hpo-server");
    return ReadServerOptions(static_cast<int>(words.size()), words.data(), out_, err_, options_);
  }

  ServerOptions options_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(ServerOptionsTest, DefaultsAreSafe) {
  ASSERT_EQ(Read({"--study", "criteria"}), std::nullopt) << err_.str();
  EXPECT_THAT(options_.studies, ElementsAre("criteria"));
  EXPECT_EQ(options_.listen, (ListenAddress{.host = "127.0.0.1", .port = 50051}));
  EXPECT_EQ(options_.database, "/state/hpo/hpo.db");
  EXPECT_EQ(options_.lease_ttl, absl::Seconds(60));
  EXPECT_EQ(options_.log_level, "info");
  EXPECT_FALSE(options_.log_json);
  EXPECT_FALSE(options_.exit_when_finished);
  EXPECT_FALSE(options_.resume);
  EXPECT_EQ(options_.overrides.trials, std::nullopt);
}

TEST_F(ServerOptionsTest, EveryFlagIsRead) {
  ASSERT_EQ(Read({"--study",        "a",
                  "--study",        "./b.yaml",
                  "--listen",       "unix:/tmp/x.sock",
                  "--db",           "/tmp/x.db",
                  "--seed",         "18446744073709551615",
                  "--trials",       "7",
                  "--epochs",       "2",
                  "--train",        "t.jsonl",
                  "--validation",   "v.jsonl",
                  "--log-level",    "debug",
                  "--log-json",     "--lease-ttl",
                  "1500ms",         "--exit-when-finished",
                  "--address-file", "/tmp/address",
                  "--metrics",      "localhost:9464"}),
            std::nullopt)
      << err_.str();
  EXPECT_THAT(options_.studies, ElementsAre("a", "./b.yaml"));
  EXPECT_EQ(options_.listen.unix_path, "/tmp/x.sock");
  EXPECT_EQ(options_.database, "/tmp/x.db");
  EXPECT_EQ(options_.overrides.seed, 18446744073709551615u);
  EXPECT_EQ(options_.overrides.trials, 7);
  EXPECT_EQ(options_.overrides.epochs, 2);
  EXPECT_EQ(options_.overrides.train, "t.jsonl");
  EXPECT_EQ(options_.overrides.validation, "v.jsonl");
  EXPECT_EQ(options_.log_level, "debug");
  EXPECT_TRUE(options_.log_json);
  EXPECT_EQ(options_.lease_ttl, absl::Milliseconds(1500));
  EXPECT_TRUE(options_.exit_when_finished);
  EXPECT_EQ(options_.address_file, "/tmp/address");
  EXPECT_EQ(options_.metrics, (ListenAddress{.host = "localhost", .port = 9464}));
}

TEST_F(ServerOptionsTest, FlagsBeatTheEnvironment) {
  setenv("HPO_EPOCHS", "5", 1);
  setenv("HPO_TRIALS", "50", 1);
  ASSERT_EQ(Read({"--epochs", "2"}), std::nullopt) << err_.str();
  EXPECT_EQ(options_.overrides.epochs, 2);
  EXPECT_EQ(options_.overrides.trials, 50);
}

TEST_F(ServerOptionsTest, BadValuesAreOneLineAndStatusTwo) {
  const struct {
    std::vector<const char*> words;
    const char* part;
  } cases[] = {
      {{"--listen", "example.org:50051"}, "--listen: expected IP:PORT such as 127.0.0.1:50051"},
      {{"--tls-cert", "/etc/hostname"}, "--tls-cert requires --tls-key"},
      {{"--insecure", "--tls"}, "--tls excludes --insecure"},
      {{"--mlflow", "mlflow:5000"}, "MLflow's address: expected http://host:port"},
      {{"--metrics", "0.0.0.0:9464"}, "--metrics: expected a loopback host and port"},
      {{"--metrics", "unix:/tmp/m"}, "--metrics: expected a loopback host and port"},
      {{"--lease-ttl", "soon"}, "--lease-ttl: expected a duration such as 60s"},
      {{"--lease-ttl", "0s"}, "--lease-ttl: expected a duration such as 60s"},
      {{"--trials", "0"}, "--trials"},
      {{"--trials", "9223372036854775808"}, "to 9223372036854775807, got '9223372036854775808'"},
      {{"--seed", "18446744073709551616"}, "from 0 to 18446744073709551615, got "},
      {{"--epochs", "many"}, "--epochs"},
      {{"--stdy", "criteria"}, "no option --stdy; did you mean '--study'?"},
      {{"criteria"}, "unexpected argument 'criteria'"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.part);
    err_.str("");
    EXPECT_EQ(Read(test.words), 2);
    const std::string line = err_.str();
    EXPECT_THAT(line, HasSubstr(test.part));
    EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  }
}

TEST_F(ServerOptionsTest, ABrokenEnvironmentIsNamed) {
  setenv("HPO_EPOCHS", "three", 1);
  EXPECT_EQ(Read({}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("HPO_EPOCHS"));
}

TEST_F(ServerOptionsTest, WithoutAHomeTheDatabaseMustBeNamed) {
  unsetenv("XDG_STATE_HOME");
  setenv("HOME", "/home/a", 1);
  ASSERT_EQ(Read({}), std::nullopt);
  EXPECT_EQ(options_.database, "/home/a/.local/state/hpo/hpo.db");
  options_.database.clear();
  unsetenv("HOME");
  EXPECT_EQ(Read({}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--db: expected a file"));
}

TEST_F(ServerOptionsTest, HelpShowsExamplesAndVersionItself) {
  EXPECT_EQ(Read({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("hpo-server --study criteria"));
  out_.str("");
  EXPECT_EQ(Read({"--version"}), 0);
  EXPECT_THAT(out_.str(), testing::StartsWith("hpo-server 0."));
}

}  // namespace
}  // namespace hpo::server
