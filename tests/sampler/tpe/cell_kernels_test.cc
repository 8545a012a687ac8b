#include "sampler/tpe/cell_kernels.h"

#include <cmath>
#include <thread>

#include "gtest/gtest.h"
#include "sampler/numeric/truncated_normal.h"

namespace hpo::sampler {
namespace {

constexpr int kNumCells = 20;

Coordinate Cell(int i) {
  const double width = 1.0 / kNumCells;
  return {.present = true, .at = (i + 0.5) * width, .cell = {i * width, (i + 1) * width}};
}

// Kernels that have been made by way of others.
void ExpectMassesOf(const CellKernels& kernels) {
  CellKernels anew;
  for (uint32_t i = 0; i < kernels.size(); ++i) anew.Add(kernels[i]);
  anew.Refit();
  for (int i = 0; i < kNumCells; ++i) {
    const CellKernels::Masses& masses = kernels.MassesAt(Cell(i));
    EXPECT_EQ(masses.values, anew.MassesAt(Cell(i)).values);
    EXPECT_EQ(masses.logs, anew.MassesAt(Cell(i)).logs);
  }
}

CellKernels SomeKernels(int count) {
  CellKernels kernels;
  for (int i = 0; i < count; ++i) kernels.Add({(i + 0.5) / count, 0.02 + 0.001 * i});
  kernels.Refit();
  return kernels;
}

TEST(CellKernels, MassesAreThoseOfTruncatedNormals) {
  const CellKernels kernels = SomeKernels(50);
  std::vector<double> totals(50, 0.0);
  for (int i = 0; i < kNumCells; ++i) {
    const Coordinate here = Cell(i);
    const CellKernels::Masses& masses = kernels.MassesAt(here);
    for (uint32_t k = 0; k < 50; ++k) {
      const auto& [centre, bandwidth] = kernels[k];
      const double log_mass = LogNormalMass((here.cell.low - centre) / bandwidth,
                                            (here.cell.high - centre) / bandwidth) -
                              LogNormalMass(-centre / bandwidth, (1.0 - centre) / bandwidth);
      EXPECT_NEAR(masses.values[k], std::exp(log_mass), 1e-12);
      if (log_mass > -600.0) {
        EXPECT_NEAR(masses.logs[k], log_mass, 1e-9 * (1.0 - log_mass));
      }
      totals[k] += masses.values[k];
    }
  }
  for (const double total : totals) EXPECT_NEAR(total, 1.0, 1e-12);
}

TEST(CellKernels, WhatIsKeptIsWhatWouldBeComputed) {
  CellKernels kernels = SomeKernels(50);
  ExpectMassesOf(kernels);
  for (uint32_t turn = 0; turn < 60; ++turn) {
    kernels.SetBandwidth(turn * 7 % 50, 0.1 + 0.01 * turn);
    if (turn % 3 == 0) kernels.Add({0.3, 0.2});
    kernels.Refit();
    if (turn % 4 != 1) ExpectMassesOf(kernels);
  }
  for (uint32_t i = 0; i < 50; ++i) kernels.SetBandwidth(i, 0.05);
  kernels.Refit();
  ExpectMassesOf(kernels);
}

TEST(CellKernels, ThreadsShareWhatIsKept) {
  CellKernels kernels = SomeKernels(50);
  for (uint32_t turn = 0; turn < 20; ++turn) {
    kernels.SetBandwidth(turn, 0.1);
    kernels.Refit();
    const std::jthread other([&kernels] { ExpectMassesOf(kernels); });
    ExpectMassesOf(kernels);
  }
}

TEST(CellKernels, OfManyNothingIsKept) {
  CellKernels kernels = SomeKernels(5000);
  EXPECT_FALSE(kernels.keeps_masses());
  CellKernels::Masses masses;
  kernels.FillIn(std::vector<uint32_t>{7, 4999}, Cell(3).cell, masses);
  const auto& [centre, bandwidth] = kernels[7];
  const double mass = NormalMass((Cell(3).cell.low - centre) / bandwidth,
                                 (Cell(3).cell.high - centre) / bandwidth) /
                      NormalMass(-centre / bandwidth, (1.0 - centre) / bandwidth);
  EXPECT_NEAR(masses.values[7], mass, 1e-12);
  EXPECT_EQ(masses.logs[8], -INFINITY);
}

}  // namespace
}  // namespace hpo::sampler
