#include "worker/command/metric_reader.h"

#include <cmath>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::command {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

MetricReader Reader(const std::vector<std::string>& patterns = {}) {
  std::vector<MetricPattern> parsed;
  for (const std::string& text : patterns) parsed.push_back(*ParseMetricPattern(text));
  return MetricReader("acc", parsed);
}

// The objective's value of each measurement, in their order.
std::vector<double> Values(MetricReader& reader, const std::vector<std::string>& lines) {
  std::vector<double> values;
  const auto add = [&values](const std::vector<Measurement>& measured) {
    for (const Measurement& one : measured) values.push_back(one.metrics.at("acc"));
  };
  for (const std::string& line : lines) add(reader.Take(line));
  add(reader.Finish());
  return values;
}

std::vector<double> ValuesOf(const std::vector<std::string>& lines,
                             const std::vector<std::string>& patterns = {}) {
  MetricReader reader = Reader(patterns);
  const std::vector<double> values = Values(reader, lines);
  EXPECT_TRUE(reader.error().ok()) << reader.error();
  return values;
}

// The error of a pattern on a line.
std::string ErrorOf(const std::string& pattern, const std::string& line) {
  MetricReader reader = Reader({pattern});
  EXPECT_THAT(Values(reader, {line}), ElementsAre()) << line;
  EXPECT_FALSE(reader.error().ok()) << line;
  return std::string(reader.error().message());
}

TEST(MetricReader, TakesLinesOfJson) {
  MetricReader reader = Reader();
  EXPECT_THAT(reader.Take("epoch 1 of 3"), ElementsAre());
  EXPECT_THAT(reader.Take(R"({"loss": 0.5})"), ElementsAre());
  const std::vector<Measurement> first = reader.Take(R"( {"acc": 0.5, "loss": 1, "name": "x"} )");
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].step, 1);
  EXPECT_THAT(first[0].metrics, ElementsAre(Pair("acc", 0.5), Pair("loss", 1.0)));
  const std::vector<Measurement> second =
      reader.Take(R"({"acc": 0.75, "step": 200, "epoch": 1.5})");
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].step, 200);
  EXPECT_EQ(second[0].epoch, 1.5);
  EXPECT_THAT(second[0].metrics, ElementsAre(Pair("acc", 0.75)));
  EXPECT_EQ(reader.Take(R"({"acc": 0.8})").at(0).step, 201);
  EXPECT_EQ(reader.Take(R"({"acc": 0.8, "step": 0.5})").at(0).step, 202) << "no whole number";
  EXPECT_THAT(reader.other_metrics(), ElementsAre(Pair("loss", 0.5)));
}

TEST(MetricReader, TakesWhatPythonPrints) {
  MetricReader reader = Reader();
  // transformers 4 and 5.
  EXPECT_THAT(reader.Take("{'acc': 0.9, 'eval_loss': 0.3, 'epoch': 1.0}").at(0).metrics,
              ElementsAre(Pair("acc", 0.9), Pair("eval_loss", 0.3)));
  EXPECT_THAT(reader.Take("{'acc': '0.9125', 'epoch': '2'}").at(0).metrics,
              ElementsAre(Pair("acc", 0.9125)));
  EXPECT_TRUE(std::isnan(reader.Take(R"({"acc": NaN})").at(0).metrics.at("acc")));
  EXPECT_EQ(reader.Take("{'acc': -inf}").at(0).metrics.at("acc"), -INFINITY);
}

TEST(MetricReader, TakesWhatLoggersPrintAroundADict) {
  for (const char* line :
       {"INFO:root:{'acc': 0.3}", "2026-01-01 10:00:00,123 - INFO - {\"acc\": 0.3}",
        "[rank0] {'acc': 0.3, 'per_class': array([0.1, 0.2])}", "[default0]:{'acc': 0.3}",
        "2026-01-01 10:00:00.123 | INFO | __main__:<module>:3 - {'acc': 0.3}",
        " 50%|#####     | 1/2 [00:01<00:01,  1.2s/it]{'acc': 0.3}", "{'acc': 0.3} in 0.5 s",
        "\x1b[32mINFO\x1b[0m {\x1b[1m'acc'\x1b[0m: \x1b[1;36m0.3\x1b[0m}",
        "OrderedDict({'acc': 0.3})", "defaultdict(<class 'float'>, {'acc': 0.3})", "[{'acc': 0.3}]",
        "f{x} {'acc': 0.3}", "{{'acc': 0.3}", "step {1} {'acc': 0.3}",
        "DEBUG {step 3, now {'acc': 0.3}", "{'acc': 0.3} {'loss': 1}"}) {
    EXPECT_THAT(ValuesOf({line}), ElementsAre(0.3)) << line;
  }
  EXPECT_THAT(ValuesOf({"train {'acc': 0.1} valid {'acc': 0.2}"}), ElementsAre(0.1, 0.2));
}

TEST(MetricReader, TakesDictsOfSeveralLines) {
  EXPECT_THAT(ValuesOf({"{", "  \"acc\": 0.3,", "  \"loss\": 0.85", "}", "{'acc': 0.4}"}),
              ElementsAre(0.3, 0.4));
  EXPECT_THAT(ValuesOf({"{", "\"acc\": 0.3", "}"}), ElementsAre(0.3)) << "indent=0";
  EXPECT_THAT(ValuesOf({"{'acc': 0.3,", " 'train': {'acc': 9,", "           'x': 1}}"}),
              ElementsAre(0.3));
  EXPECT_THAT(ValuesOf({"{'train': {'acc': 9},", " 'acc': 0.3}"}), ElementsAre(0.3));
  EXPECT_THAT(ValuesOf({"INFO:root:{", "  \"acc\": 0.3,", "  \"list\": [", "    1,", "    2", "  ]",
                        "} done"}),
              ElementsAre(0.3));
  EXPECT_THAT(ValuesOf({"[0]: {", "[0]:   \"acc\": 0.3", "[0]: }"}), ElementsAre(0.3))
      << "torchrun";
  EXPECT_THAT(
      ValuesOf({"{", "  \"acc\": 0.3,", "UserWarning: x", " 50%|##  | 1/2", "  \"b\": 1", "}"}),
      ElementsAre(0.3))
      << "other lines between";
  EXPECT_THAT(ValuesOf({"{", "  \"acc\": 0.3,", "  \"b\": 1", "}"}, {"\"acc\": (\\S+),"}),
              ElementsAre(0.3))
      << "once";
  EXPECT_THAT(ValuesOf({"{", "  \"score\": 0.3", "}"}, {"\"score\": (\\S+)"}), ElementsAre(0.3));
}

TEST(MetricReader, ABraceThatNeverClosesCostsNoMetrics) {
  EXPECT_THAT(ValuesOf({"{", "{'acc': 0.1}", "{'acc': 0.2}"}), ElementsAre(0.1, 0.2));
  EXPECT_THAT(ValuesOf({"{'a': ", "  {'acc': 0.1}", "  {'acc': 0.2}"}), ElementsAre(0.1, 0.2));
  EXPECT_THAT(ValuesOf({"{'a': {'acc': 0.1}"}), ElementsAre(0.1));
  EXPECT_THAT(ValuesOf({"{'a': [", "  {'acc': 0.1},", "{'acc': 0.2}"}), ElementsAre(0.1, 0.2));
  std::vector<std::string> lines = {"{'acc': ["};
  for (size_t i = 0; i < DictLines::kMostLines; ++i) lines.push_back("  0.5,");
  lines.push_back("  {'acc': 0.1},");
  MetricReader reader = Reader();
  EXPECT_THAT(Values(reader, lines), ElementsAre(0.1));
  lines = {"{'acc': ["};
  for (int i = 0; i < 100; ++i) lines.push_back("  " + std::string(1000, '1') + ",");
  lines.push_back("  {'acc': 0.1},");
  EXPECT_THAT(ValuesOf(lines), ElementsAre(0.1)) << "too long to be held";
}

TEST(MetricReader, TakesLongDicts) {
  std::vector<std::string> lines = {"{", "  \"acc\": 0.3,", "  \"list\": ["};
  for (int i = 0; i < 100'000; ++i) lines.push_back("    0.123456,");
  for (const char* line : {"    1", "  ],", "  \"step\": 7", "}"}) lines.emplace_back(line);
  MetricReader reader = Reader();
  EXPECT_THAT(Values(reader, lines), ElementsAre(0.3));
  EXPECT_EQ(reader.last()->step, 7);
  std::string list;
  for (int i = 0; i < 300'000; ++i) list += "0.123456, ";
  EXPECT_THAT(ValuesOf({"{'list': [" + list + "], 'acc': 0.3}"}), ElementsAre(0.3));
  std::string dicts;
  for (int i = 0; i < 150; ++i) dicts += "{'loss': 1}, ";
  EXPECT_THAT(ValuesOf({"[" + dicts + "{'acc': 0.3}]"}), ElementsAre(0.3));
}

TEST(MetricReader, TakesDictsBehindTimesThatDiffer) {
  EXPECT_THAT(
      ValuesOf({"2026-11-27 10:00:09,123 INFO {", "2026-11-27 10:00:10,4 INFO   \"acc\": 0.3,",
                "2026-11-27 10:00:10,45 INFO   \"b\": 2", "2026-11-27 10:00:11,5 INFO }"}),
      ElementsAre(0.3));
  EXPECT_THAT(ValuesOf({"[0]: {", "[1]:   \"acc\": 0.4,", "[0]:   \"acc\": 0.3", "[0]: }"}),
              ElementsAre(0.3))
      << "of two ranks";
}

// Objects print whatever they like; the number stands before that, or between it and the end.
TEST(MetricReader, TakesTheNumberOfADictThatIsNotAllUnderstood) {
  const std::vector<std::string> cases[] = {
      {"{'acc': 0.3, 'table':    a", "0  1", "1  2}"},
      {"{'table':    a", "0  1", "1  2, 'acc': 0.3}"},
      {"{'acc': 0.3, 's': 0    1", "1    2", "dtype: int64}"},
      {"{'acc': 0.3, 'm': don't {, 'z': 1}"},
      {"{'m': rock 'n roll, 'acc': 0.3}"},
      {"{'m': <Foo>'s, 'acc': 0.3}"},
      {"{'m': (: , 'acc': 0.3}"},
      {"{'m': i <b, 'acc': 0.3}"},
      {"{'sub': {'acc': 9}, 'm': (: , 'acc': 0.3}"},
      {"{'m': (: , 'sub': {'acc': 9}, 'acc': 0.3}"},
      {"{'acc': 0.3, 'sub': {'acc': 9}, 'm': (:}"},
      {"{'acc': 0.3, 'sub': {'acc': 9, 'm': (:}}"},
      {"{'acc': 0.3, 'text': 'several", "lines'}"},
      {"{'text': 'several", "lines', 'acc': 0.3}"},
      {"{'acc': 0.3, 'sub': {'text': 'several", "lines', 'acc': 9}}"},
      {"{'acc': \x1b[1m0.3\x1b(B\x1b[m}"},
  };
  for (const std::vector<std::string>& lines : cases) {
    MetricReader reader = Reader();
    reader.Take("{'acc': 0.9}");
    EXPECT_THAT(Values(reader, lines), ElementsAre(0.3)) << lines.front();
    EXPECT_FALSE(reader.unread().has_value()) << lines.front();
  }
}

TEST(MetricReader, KnowsThatTheLastNumberIsUnread) {
  using Case = std::pair<std::vector<std::string>, std::string>;  // lines, value
  const Case cases[] = {
      {{"{'acc': None}"}, "None"},
      {{"{\"acc\": null, \"b\": 1}"}, "null"},
      {{"{'acc': 'high'}"}, "'high'"},
      {{"{'acc': {'mean': 1}}"}, "{'mean': 1}"},
      {{"{'acc': [0.9, 0.8]}"}, "[0.9, 0.8]"},
      {{"{'acc': 1,234.5}"}, "1, 234.5"},
      {{"{'acc': , 'b': 1}"}, ""},
      {{"{'acc': 0    1", "dtype: int64}"}, "?"},
      {{"{'m': don't {, 'acc': 0.3}"}, "?"},
      {{"{'x': 1, 'sub': {'acc': 9}, 'm': (:}"}, "?"},
      {{"{'x': 1, 'sub': {'m': (:, 'acc': 9}}"}, "?"},
      {{"{'acc': 0.3"}, "?"},
      {{"{'acc': 0.3", "and more"}, "?"},
      {{"{", "12:00 W x (", "  \"acc\": 0.3", "}"}, "?"},
      {{"  \"acc\": 0.3,"}, "?"},
  };
  for (const auto& [lines, value] : cases) {
    MetricReader reader = Reader();
    reader.Take("{'acc': 0.9}");
    const std::vector<double> values = Values(reader, lines);
    if (values == std::vector<double>{0.3}) continue;  // read after all
    EXPECT_THAT(values, ElementsAre()) << lines.front();
    ASSERT_TRUE(reader.unread().has_value()) << lines.front();
    EXPECT_EQ(reader.unread()->value.value_or("?"), value) << lines.front();
    EXPECT_LE(reader.unread()->line.size(), 200U);
    reader.Take("{'acc': 0.5}");
    EXPECT_FALSE(reader.unread().has_value()) << "a number came after it";
  }
}

TEST(MetricReader, OtherTextsMayNameTheObjective) {
  const std::vector<std::string> cases[] = {
      {"acc improved from 0.8 to 0.9"},
      {"best acc: see above"},
      {"'acc' improved: yes"},
      {"best 'acc': see above"},
      {"saved {acc:.3f}.ckpt"},
      {"monitor {'metric': 'acc', 'mode': 'max'}"},
      {"{'best': {'acc': None}, 'epochs': 3}"},
      {"{", "  \"args\": {", "    \"acc\": null", "  }", "}"},
      {"{'note': \"it was {'acc': None}\", 'b': 1}"},
      {"{'acc': [0.8, 0.9]}"},
      {"{'acc': [np.float64(0.8), np.float64(0.9)], 'loss': [2, 1]}"},
  };
  for (const std::vector<std::string>& lines : cases) {
    MetricReader reader = Reader();
    reader.Take("{'acc': 0.9}");
    EXPECT_THAT(Values(reader, lines), ElementsAre()) << lines.front();
    EXPECT_FALSE(reader.unread().has_value()) << lines.front();
  }
  MetricReader reader = Reader({"\"acc\": (\\S+),"});
  EXPECT_THAT(Values(reader, {"  \"acc\": 0.3,"}), ElementsAre(0.3));
  EXPECT_FALSE(reader.unread().has_value()) << "a pattern reads it";
}

TEST(MetricReader, FindsPatterns) {
  MetricReader reader = Reader({"val acc: ([0-9.]+)", "(?P<loss>[0-9.]+) loss"});
  EXPECT_THAT(reader.Take("0.25 loss"), ElementsAre());
  const std::vector<Measurement> measured = reader.Take("step 3, val acc: 0.5");
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_THAT(measured[0].metrics, ElementsAre(Pair("acc", 0.5), Pair("loss", 0.25)));
  EXPECT_THAT(reader.Take("val acc: ..."), ElementsAre());
  EXPECT_TRUE(reader.error().ok()) << reader.error();
}

TEST(MetricReader, TakesTheNumberThatAGroupHolds) {
  const std::pair<const char*, double> cases[] = {
      {"acc: 1.862e-05", 1.862e-05},
      {"acc: -0.5, loss 3", -0.5},
      {"acc: 1,234.5", 1234.5},
      {"acc: 90%", 90},
      {"acc: 0.5s", 0.5},
      {"acc: inf", INFINITY},
      {"acc: -Infinity.", -INFINITY},
      {"acc: np.float64(0.3)", 0.3},
      {"acc: tensor(0.3, device='cuda:0')", 0.3},
      {"acc: \x1b[32m0.35\x1b[0m", 0.35},
      {"acc: \x1b]8;;http://x\x1b\\0.35\x1b]8;;\x1b\\", 0.35},
      {"top5 acc: 0.8", 0.8},
      {"acc: 0.1 acc: 0.2", 0.1},  // the first match of a line
      {"acc: '0.5',", 0.5},
  };
  for (const auto& [line, value] : cases) {
    EXPECT_THAT(ValuesOf({line}, {"acc: (\\S+)"}), ElementsAre(value)) << line;
  }
  EXPECT_TRUE(std::isnan(ValuesOf({"acc: nan"}, {"acc: (\\S+)"}).at(0)));
  EXPECT_THAT(ValuesOf({"3,0.25,0.91"}, {"^[0-9]+,([0-9.]+),"}), ElementsAre(0.25));
  EXPECT_THAT(ValuesOf({"acc0.5"}, {"acc([0-9.]+)"}), ElementsAre(0.5));
  EXPECT_THAT(ValuesOf({"acc: 0.5."}, {"acc: ([0-9.]+)"}), ElementsAre(0.5));
  EXPECT_THAT(ValuesOf({"acc: n/a", "acc: "}, {"acc: (\\S*)"}), ElementsAre());
  EXPECT_THAT(ValuesOf({"b 0.5"}, {"a ([0-9.]+)|b ([0-9.]+)"}), ElementsAre());
}

TEST(MetricReader, AMatchThatIsPartOfANumberIsAnError) {
  EXPECT_THAT(ErrorOf("acc: ([0-9.]+)", "acc: 1.862e-05"),
              AllOf(HasSubstr("matched '1.862', a part of the number 1.862e-05"),
                    HasSubstr("in the line 'acc: 1.862e-05'"), HasSubstr("'loss: (\\S+)'")));
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"acc: ([0-9.]+).*", "acc: 1.8E+3 loss", "a part of the number 1.8E+3"},
      {"acc: ([0-9.e]+)", "acc: 1.8e-05", "a part of the number 1.8e-05"},
      {"acc: [0-9.e]*-([0-9]+)", "acc: 1.8e-05", "a part of the number 1.8e-05"},
      {"acc:.*?([0-9.]+)", "acc: -0.5", "a part of the number -0.5"},
      {"acc: ([0-9.]+)", "acc: 1,234.5", "a part of the number 1,234.5"},
      {"acc: ([0-9]+)", "acc: 1_234", "a part of the number 1_234"},
      {"acc: ([0-9]+)", "acc: 0.75", "a part of the number 0.75"},
      {"acc: [0-9]+.([0-9]+)", "acc: 0.75", "a part of the number 0.75"},
      {"acc: ([0-9.]+)", "acc: 0,35", "a part of the number 0,35"},
      {"acc: (\\S+)", "acc: 0,35", "0,35 is no number that is read"},
      {"acc: (\\S+)", "acc: 1.5.2", "1.5.2 is no number that is read"},
      {"acc: ([0-9]+)", "acc: 0x1f", "a part of the number 0x1f"},
      {"acc: (.*)", "acc: 0.35 (best 0.33)", "more than one number (0.35 and 0.33)"},
      {"acc: (-?i)", "acc: -inf", "a part of the number -inf"},
  };
  for (const auto& [pattern, line, message] : cases) {
    EXPECT_THAT(ErrorOf(pattern, line), HasSubstr(message)) << line;
  }
  EXPECT_LT(
      ErrorOf("([0-9]+)", std::string(100'000, 'x') + "0.5" + std::string(100'000, 'x')).size(),
      600U);
}

TEST(MetricReader, RefusesPatternsWithoutANumber) {
  EXPECT_THAT(ParseMetricPattern("acc: (").status().message(), HasSubstr("got 'acc: ('"));
  EXPECT_THAT(ParseMetricPattern("acc").status().message(), HasSubstr("round brackets"));
}

TEST(MetricReader, RecognisesMemoryThatRanOut) {
  const std::vector<std::pair<std::string, bool>> lines = {
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.", false},
      {"tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor "
       "with shape[64,512]",
       false},
      {"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
       "allocate 1 bytes",
       false},
      {"RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", false},
      {"RuntimeError: CUDA error: out of memory", false},
      {"torch.AcceleratorError: CUDA error: out of memory", false},
      {"tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node "
       "__wrapped__AddV2_device_/job:localhost}} failed to allocate memory [Op:AddV2]",
       false},
      {"RuntimeError: MPS backend out of memory (MPS allocated: 8.00 GB)", false},
      {"_catboost.CatBoostError: CUDA error 2: out of memory", false},
      {"RuntimeError: [enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate "
       "memory: you tried to allocate 1 bytes",
       true},
      {"MemoryError", true},
      {"numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 TiB", true},
  };
  for (const auto& [line, host] : lines) {
    MetricReader reader = Reader();
    reader.Take("Traceback (most recent call last):");
    reader.Take(line);
    reader.Take("done");
    EXPECT_EQ(reader.oom_line(), line);
    EXPECT_EQ(reader.is_host_oom(), host) << line;
  }
  MetricReader reader = Reader();
  reader.Take("grpc: RESOURCE_EXHAUSTED: too many calls");
  EXPECT_EQ(reader.oom_line(), "");
}

TEST(MetricReader, AWarningThatWasSurvivedIsNotWhyALaterErrorCame) {
  const char* const kWarning = "warning: CUDA out of memory. Tried to allocate 20 MiB; skipping";
  MetricReader reader = Reader();
  for (const char* line :
       {kWarning, "step 2", "Traceback (most recent call last):", "KeyError: 'lr'"}) {
    reader.Take(line);
  }
  EXPECT_EQ(reader.oom_line(), "");
  MetricReader killed = Reader();
  for (const char* line : {kWarning, "step 2"}) killed.Take(line);
  EXPECT_EQ(killed.oom_line(), kWarning) << "nothing else is known of its end";
  MetricReader again = Reader();
  for (const char* line : {kWarning, "Traceback (most recent call last):",
                           "torch.OutOfMemoryError: CUDA out of memory."}) {
    again.Take(line);
  }
  EXPECT_EQ(again.oom_line(), "torch.OutOfMemoryError: CUDA out of memory.");
  MetricReader launcher = Reader();
  for (const char* line : {"[rank1]: torch.OutOfMemoryError: CUDA out of memory.",
                           "Traceback (most recent call last):", "ChildFailedError"}) {
    launcher.Take(line);
  }
  EXPECT_NE(launcher.oom_line(), "") << "a launcher's error is no other cause";
}

TEST(MetricReader, KeepsTheLastLines) {
  MetricReader reader = Reader();
  for (int i = 0; i < 2000; ++i) reader.Take("line " + std::to_string(i));
  const std::string tail = reader.Tail();
  EXPECT_LE(tail.size(), 4096U);
  EXPECT_THAT(tail, testing::EndsWith("line 1998\nline 1999"));
}

}  // namespace
}  // namespace hpo::command
