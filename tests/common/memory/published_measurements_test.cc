// The rows of bench/memory_published as a regression test: whatever changes the tracer or the
// allocator model must still meet what others measured.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/memory/described_step_trace.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

struct Row {
  StepDescription step;
  double measured_mib = 0;
};

std::vector<Row> ReadRows() {
  std::ifstream file(std::string(HPO_SOURCE_DIR) + "/bench/memory_published.csv");
  std::string line;
  std::getline(file, line);  // the header
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string cell;
    std::vector<int64_t> v;
    while (std::getline(cells, cell, ',')) v.push_back(std::stoll(cell));
    Row row{.measured_mib = static_cast<double>(v.at(8))};
    row.step = {.layers = {EmbeddingLayer{v[6], v[2]}, PositionLayer{v[1]},
                           EncoderLayers{.count = v[3], .heads = v[4], .feed_forward = v[5]},
                           PoolingLayer{}, LinearLayer{v[7]}},
                .batch = v[0],
                .length = v[1],
                .warm_up_forwards = 2};
    rows.push_back(row);
  }
  return rows;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TEST(PublishedMeasurements, AreMetWithOneConstant) {
  const std::vector<Row> rows = ReadRows();
  ASSERT_EQ(rows.size(), 35U);
  std::vector<double> reserved_mib;
  std::vector<double> base;
  for (const Row& row : rows) {
    const AllocatorStats stats = Replay(TraceOfStep(row.step), {}).stats;
    reserved_mib.push_back(static_cast<double>(stats.reserved_peak.count) / (1 << 20));
    if (base.size() < 17) base.push_back(row.measured_mib - reserved_mib.back());
  }
  const double constant = Median(base);
  EXPECT_NEAR(constant, 1505, 15);
  std::vector<double> errors;
  for (size_t i = 0; i < rows.size(); ++i) {
    errors.push_back(std::abs((reserved_mib[i] + constant) / rows[i].measured_mib - 1));
  }
  EXPECT_LE(Median(errors), 0.006);
  EXPECT_LE(Median({errors.begin() + 17, errors.end()}), 0.006);
  EXPECT_GE(std::count_if(errors.begin(), errors.end(), [](double e) { return e <= 0.04; }), 32);
}

}  // namespace
}  // namespace hpo
