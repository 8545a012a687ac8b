// Test functions, with their usual constants: Branin, Hartmann of six dimensions, Rosenbrock of
// five, Ackley of ten (Surjanovic & Bingham, sfu.ca/~ssurjano), and a space with conditions of our
// own.
#include <array>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/sampler/memory_functions.h"
#include "bench/sampler/problem.h"
#include "common/base/status.h"

namespace hpo {
namespace {

using LossFunction = std::function<double(const ParamMap&)>;

std::vector<double> Vector(const ParamMap& params) {
  std::vector<double> values;
  for (const auto& [name, value] : params) values.push_back(*AsNumber(value));
  return values;
}

SearchSpace Cube(int dimensions, double low, double high) {
  SearchSpace space;
  for (int i = 0; i < dimensions; ++i) {
    space.parameters.push_back(
        sampler::MakeParameter(absl::StrCat("x", i), FloatDomain{low, high}));
  }
  return space;
}

Domain Choices(const std::vector<std::string>& names) {
  CategoricalDomain domain;
  for (const std::string& name : names) domain.choices.emplace_back(name);
  return domain;
}

SamplerProblem Quality(SearchSpace space, double optimum, LossFunction objective) {
  SamplerProblem problem;
  problem.space = std::move(space);
  problem.optimum = optimum;
  problem.run = [objective = std::move(objective)](const ParamMap& params, Rng&) {
    return sampler::SimulatedResult(objective(params));
  };
  return problem;
}

double Branin(const ParamMap& params) {
  const double x = At(params, "x1");
  const double y = At(params, "x2");
  const double pi = std::numbers::pi;
  const double root = y - 5.1 / (4.0 * pi * pi) * x * x + 5.0 / pi * x - 6.0;
  return root * root + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * std::cos(x) + 10.0;
}

SearchSpace BraninSpace() {
  SearchSpace space;
  space.parameters = {sampler::MakeParameter("x1", FloatDomain{-5.0, 10.0}),
                      sampler::MakeParameter("x2", FloatDomain{0.0, 15.0})};
  return space;
}

double Hartmann6(const ParamMap& params) {
  constexpr double kA[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                               {0.05, 10, 17, 0.1, 8, 14},
                               {3, 3.5, 1.7, 10, 17, 8},
                               {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double kP[4][6] = {{1312, 1696, 5569, 124, 8283, 5886},
                               {2329, 4135, 8307, 3736, 1004, 9991},
                               {2348, 1451, 3522, 2883, 3047, 6650},
                               {4047, 8828, 8732, 5743, 1091, 381}};
  constexpr double kAlpha[4] = {1.0, 1.2, 3.0, 3.2};
  const std::vector<double> x = Vector(params);
  double sum = 0.0;
  for (size_t i = 0; i < 4; ++i) {
    double exponent = 0.0;
    for (size_t j = 0; j < 6; ++j) {
      const double distance = x[j] - 1e-4 * kP[i][j];
      exponent += kA[i][j] * distance * distance;
    }
    sum += kAlpha[i] * std::exp(-exponent);
  }
  return -sum;
}

double Rosenbrock5(const ParamMap& params) {
  const std::vector<double> x = Vector(params);
  double sum = 0.0;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    const double bend = x[i + 1] - x[i] * x[i];
    sum += 100.0 * bend * bend + (1.0 - x[i]) * (1.0 - x[i]);
  }
  return sum;
}

double Ackley10(const ParamMap& params) {
  double squares = 0.0;
  double cosines = 0.0;
  for (const double x : Vector(params)) {
    squares += x * x / 10.0;
    cosines += std::cos(2.0 * std::numbers::pi * x) / 10.0;
  }
  return -20.0 * std::exp(-0.2 * std::sqrt(squares)) - std::exp(cosines) + 20.0 + std::numbers::e;
}

// ---- Conditions --------------------------------------------------------------------------------

SearchSpace ConditionalSpace() {
  SearchSpace space;
  space.parameters = {
      sampler::MakeParameter("act", Choices({"relu", "tanh", "gelu"})),
      sampler::MakeParameter("opt", Choices({"adam", "sgd", "rmsprop"})),
      sampler::MakeParameter("lr", LogFloat(1e-5, 1.0)),
      sampler::MakeParameter("mom", FloatDomain{0.0, 0.99}),
      sampler::MakeParameter("wd", LogFloat(1e-8, 1e-1)),
      sampler::MakeParameter("drop", FloatDomain{.low = 0.0, .high = 0.6, .step = 0.05}),
      sampler::MakeParameter("n_layers", IntDomain{1, 4})};
  space.parameters[3].when = {{"opt", {std::string("sgd")}}};
  for (int64_t i = 0; i < 4; ++i) {
    Parameter units = sampler::MakeParameter(absl::StrCat("u", i), LogInt(8, 512));
    Condition deep{.name = "n_layers"};
    for (int64_t layers = i + 1; layers <= 4; ++layers) deep.values.emplace_back(layers);
    if (i > 0) units.when = {deep};
    space.parameters.push_back(units);
  }
  return space;
}

double OptimizerCost(const ParamMap& params) {
  const double rate = std::log10(At(params, "lr"));
  const std::string optimizer = *FindString(params, "opt");
  if (optimizer == "adam") return 0.05 + 0.5 * (rate + 3.0) * (rate + 3.0);
  if (optimizer == "rmsprop") return 0.10 + 0.5 * (rate + 3.5) * (rate + 3.5);
  const double momentum = At(params, "mom");
  const double off = rate + 1.0 + 1.5 * momentum;
  return 0.5 * off * off + 2.0 * (momentum - 0.9) * (momentum - 0.9);
}

double Conditional(const ParamMap& params) {
  constexpr double kGoals[] = {7.0, 6.0, 5.0, 4.0};
  const std::string activation = *FindString(params, "act");
  double cost = activation == "relu" ? 0.03 : 0.0;
  if (activation == "tanh") cost = 0.08;
  cost += OptimizerCost(params);
  const double decay = std::log10(At(params, "wd")) + 4.0;
  const double drop = At(params, "drop") - 0.2;
  const int64_t layers = *FindInt(params, "n_layers");
  const double off = static_cast<double>(layers) - 3.0;
  cost += 0.01 * decay * decay + (layers >= 3 ? 0.5 : 0.25) * drop * drop + 0.05 * off * off;
  for (int64_t i = 0; i < layers; ++i) {
    const double units = std::log2(At(params, absl::StrCat("u", i))) - kGoals[i];
    cost += 0.02 * units * units;
  }
  return cost;
}

// ---- Ten parameters of every kind --------------------------------------------------------------

SearchSpace MixedSpace() {
  const std::vector<std::string> letters = {"a", "b", "c", "d", "e"};
  SearchSpace space;
  space.parameters = {sampler::MakeParameter("f0", FloatDomain{-5.0, 5.0}),
                      sampler::MakeParameter("f1", FloatDomain{0.0, 1.0}),
                      sampler::MakeParameter("f2", LogFloat(1e-5, 1.0)),
                      sampler::MakeParameter("f3", LogFloat(1e-3, 1e3)),
                      sampler::MakeParameter("i0", IntDomain{1, 32}),
                      sampler::MakeParameter("i1", IntDomain{.low = 0, .high = 100, .step = 5}),
                      sampler::MakeParameter("i2", LogInt(1, 1024)),
                      sampler::MakeParameter("c0", Choices({"a", "b", "c"})),
                      sampler::MakeParameter("c1", Choices(letters)),
                      sampler::MakeParameter("c2", Choices({"a", "b"}))};
  return space;
}

double Mixed(const ParamMap& params) {
  const auto square = [](double x) { return x * x; };
  const auto letter = [&params](const std::string& name) {
    return FindString(params, name)->front() - 'a';
  };
  return square(At(params, "f0")) + square(At(params, "f1") - 0.3) +
         square(std::log10(At(params, "f2")) + 3.0) / 4.0 +
         square(std::log10(At(params, "f3")) - 1.0) / 9.0 +
         square((At(params, "i0") - 8.0) / 16.0) + square((At(params, "i1") - 40.0) / 50.0) +
         square(std::log2(At(params, "i2")) - 6.0) / 16.0 + (letter("c0") == 1 ? 0.0 : 0.5) +
         0.1 * letter("c1") + (letter("c2") == 0 ? 0.0 : 0.3);
}

}  // namespace

double At(const ParamMap& params, const std::string& name) { return *AsNumber(params.at(name)); }

Domain LogInt(int64_t low, int64_t high) {
  return IntDomain{.low = low, .high = high, .step = 1, .log = true};
}

Domain LogFloat(double low, double high) {
  return FloatDomain{.low = low, .high = high, .log = true};
}

absl::StatusOr<SamplerProblem> FindSamplerProblem(absl::string_view name) {
  const std::map<std::string, std::function<SamplerProblem()>> problems = {
      {"branin", [] { return Quality(BraninSpace(), 0.39788735772973816, Branin); }},
      {"hartmann6", [] { return Quality(Cube(6, 0.0, 1.0), -3.322368011391339, Hartmann6); }},
      {"rosenbrock5", [] { return Quality(Cube(5, -5.0, 10.0), 0.0, Rosenbrock5); }},
      {"ackley10", [] { return Quality(Cube(10, -32.768, 32.768), 0.0, Ackley10); }},
      {"conditional", [] { return Quality(ConditionalSpace(), 0.0, Conditional); }},
      {"mixed10", [] { return Quality(MixedSpace(), 0.0, Mixed); }},
      {"cliff_known", [] { return MemoryCliff(SamplerProblem::Memory::kKnown); }},
      {"cliff_learned", [] { return MemoryCliff(SamplerProblem::Memory::kLearned); }},
      {"fleet", FleetProblem},
  };
  const auto found = problems.find(std::string(name));
  if (found == problems.end()) {
    return absl::NotFoundError(absl::StrCat(
        "problem: expected one of ",
        absl::StrJoin(problems, ", ",
                      [](std::string* out, const auto& entry) { out->append(entry.first); }),
        ", got ", name));
  }
  SamplerProblem problem = found->second();
  problem.name = std::string(name);
  return problem;
}

}  // namespace hpo
