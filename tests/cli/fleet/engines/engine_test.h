// What tests of engines have in common.
#pragma once

#include <gtest/gtest.h>

#include "cli/fleet/engines/fleet_plan.h"
#include "tests/cli/fleet/engines/fake_programs.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::cli {

class EngineTest : public testing::Test {
 protected:
  // Two workers of a server without TLS.
  FleetPlan Plan() const {
    FleetPlan plan{.name = "toy", .study = "toy", .workers = 2};
    plan.server.address = "10.0.0.1:50051";
    plan.folder = folder_.path() + "/fleets/toy";
    return plan;
  }
  // Of a server with TLS, whose secret is SECRET.
  FleetPlan PlanWithSecret() const {
    FleetPlan plan = Plan();
    plan.server = {.join = "hpo1.hash.SECRET@host:50051"};
    return plan;
  }

  TemporaryFolder folder_;
  FakePrograms programs_;
};

}  // namespace hpo::cli
