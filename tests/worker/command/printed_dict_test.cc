#include "worker/command/printed_dict.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace hpo::command {
namespace {

// "NAME=VALUE NAME=VALUE" of a closed dict, "open", or "none".
std::string Read(absl::string_view text) {
  const PrintedDict dict = ReadPrintedDict(text);
  if (dict.end == PrintedDict::End::kOpen) return "open";
  if (dict.end == PrintedDict::End::kNone) return "none";
  EXPECT_EQ(text.substr(dict.size - 1, 1), "}");
  return absl::StrJoin(dict.numbers, " ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, "=", entry.second);
  });
}

TEST(PrintedDict, TakesWhatIsANumberOutOfEachEntry) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"a": 0.3})", "a=0.3"},
      {R"({"a":0.3,"b":-1e-05})", "a=0.3 b=-1e-05"},
      {"{'a': 0.3, 'b': nan, 'c': inf, 'd': -inf}", "a=0.3 b=nan c=inf d=-inf"},
      {R"({"a": NaN, "b": Infinity, "c": -Infinity})", "a=nan b=inf c=-inf"},
      {"{'a': '0.3', 'b': 'text'}", "a=0.3"},
      {"{'a': np.float64(0.3), 'b': np.float32(0.85), 'c': np.int64(-3)}", "a=0.3 b=0.85 c=-3"},
      {"{'a': numpy.float64(nan), 'b': np.float64(-inf)}", "a=nan b=-inf"},
      {"{'a': tensor(0.3), 'b': tensor(0.25, device='cuda:0', grad_fn=<MeanBackward0>)}",
       "a=0.3 b=0.25"},
      {"{'a': tensor(0.3000, dtype=torch.float64), 'b': tensor(1.)}", "a=0.3 b=1"},
      {"{'a': Array(0.3, dtype=float32, weak_type=True), 'b': array(0.3, dtype=float32)}",
       "a=0.3 b=0.3"},
      {"{'a': <tf.Tensor: shape=(), dtype=float32, numpy=0.3>, 'b': 1}", "a=0.3 b=1"},
      {"{'b': <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.1, 0.2], dtype=float32)>, "
       "'a': 1}",
       "a=1"},
      {"{'a': Decimal('0.3'), 'b': Fraction(3, 10), 'c': Fraction(1, 0)}", "a=0.3 b=0.3"},
      {"{np.str_('a'): np.float64(0.3)}", "a=0.3"},
      {"{'a': 0.3, 'a': 0.4}", "a=0.4"},
      {"{}", ""},
      {"{'a': 0.3,}", "a=0.3"},
      {"{'a': 0.3, ...}", "a=0.3"},
      {"{'a': 0.3} and more", "a=0.3"},
      {"{'a': '1,234.5', 'b': ' 0.3 ', 'c': '90%', 'd': '0,3', 'e': '1, 2'}", "a=1234.5 b=0.3"},
      {"{'a': 1,234.5, 'b': 2}", "b=2"},
      {"{ a: 0.3, b: 'x' }", "a=0.3"},
      {"Some { a: 0.3 }", "none"},
      {"{a:3}", ""},
      {"{'a': Parameter containing:\ntensor(0.25, requires_grad=True)}", "a=0.25"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Read(text), expected) << text;
}

TEST(PrintedDict, AnEntryThatIsNoNumberDoesNotSpoilIt) {
  for (const char* entry : {"'b': True",
                            "'b': False",
                            "'b': None",
                            "\"b\": null",
                            "\"b\": true",
                            "'b': 'it\\'s'",
                            "'b': \"it's\"",
                            "'b': \"a, {b\"",
                            "'b': [0.1, 0.2]",
                            "'b': (1, 2)",
                            "'b': {1, 2}",
                            "'b': {'a': 9, 'c': {'a': 8}}",
                            "'b': array([0.1, 0.2])",
                            "'b': tensor([0.1, 0.2])",
                            "'b': tensor([[0.1],\n        [0.2]])",
                            "'b': array([0.1,\n       0.2])",
                            "'b': <class 'float'>",
                            "'b': <function f at 0x7f>",
                            "'b': range(0, 3)",
                            "'b': datetime.datetime(2026, 1, 1, 0, 0)",
                            "'b': datetime.timedelta(seconds=3)",
                            "'b': PosixPath('3')",
                            "'b': torch.Size([3])",
                            "'b': torch.float32",
                            "'b': 1+2j",
                            "'b': (1+2j)",
                            "'b': np.complex128(1+2j)",
                            "'b': np.True_",
                            "'b': 0x1f",
                            "'b': 1 2",
                            "'b': UUID('1')",
                            "1: 0.5",
                            "None: 1",
                            "(1, 2): 3",
                            "'b': np.timedelta64(3,'D')",
                            "'b': Foo(it's)",
                            "'b': b'3'",
                            "'b': OrderedDict([('a', 9)])",
                            "'b': Foo(9).bar",
                            "'b': ",
                            "'b': :)",
                            "'b': :]",
                            "'b': 3 items, 4 b",
                            "'b': p<x",
                            "'b': i <3 n>",
                            "'b': don't",
                            "'b': <Foo a->b>",
                            "'b': T{\n  a: 1\n}",
                            "'b': Sequential(\n  (0): Linear(in_features=1)\n)",
                            "'b': 2026-11-27 10:00:00",
                            "'b': 'long text '\n     'that goes on'"}) {
    EXPECT_EQ(Read(absl::StrCat("{", entry, ", 'a': 0.3}")), "a=0.3") << entry;
    EXPECT_EQ(Read(absl::StrCat("{'a': 0.3, ", entry, "}")), "a=0.3") << entry;
  }
}

TEST(PrintedDict, DecodesNames) {
  EXPECT_EQ(Read(R"({"pr\u00e9c": 1})"),
            "pr\xc3\xa9"
            "c=1");
  EXPECT_EQ(Read(R"({'it\'s': 1, "it's": 2, 'a"b': 3, "a\"b": 4, 'c\\d': 5, '\x41': 6})"),
            R"(A=6 a"b=4 c\d=5 it's=2)");
}

TEST(PrintedDict, MayHaveSeveralLines) {
  EXPECT_EQ(Read("{\n  \"a\": 0.3,\n  \"b\": {\n    \"a\": 9\n  },\n  \"c\": 2\n}"), "a=0.3 c=2");
  EXPECT_EQ(Read("{'a': 0.3,\n 'b': 0.85}"), "a=0.3 b=0.85");
  EXPECT_EQ(Read("{\n}"), "");
}

TEST(PrintedDict, SaysWhatIsOpenAndWhatIsNone) {
  for (const char* text : {"{", "{'a':", "{'a': 0.3", "{'a': 0.3,", "{'a': [0.3,", "{'a': {'b': 1}",
                           "{\n  \"a\": 0.3\n", "{'a': 1)"}) {
    EXPECT_EQ(Read(text), "open") << text;
  }
  for (const char* text : {"", "a", "[1]", "{1, 2}", "{a}", "{'a', 'b'}", "{ {'a': 1} }", "{'a'",
                           "{'a' 1}", "{: 1}", "{'a': 1 \n 'b': 2}", "{ x = 1; }\n", "{[1]: 2}"}) {
    EXPECT_EQ(Read(text), "none") << text;
  }
}

TEST(PrintedDict, LeavesOutWhatIsBeyondTheLimits) {
  PrintedDictReader reader("zz");
  std::string text = absl::StrCat("{'", std::string(201, 'n'), "': 1");
  for (int i = 0; i < 1200; ++i) absl::StrAppend(&text, ", 'm", i, "': ", i);
  EXPECT_EQ(reader.Take(absl::StrCat(text, ", 'zz': 3, 'epoch': 2, 'step': 1}")),
            PrintedDict::End::kClosed);
  EXPECT_LE(reader.numbers().size(), 1000U);
  EXPECT_EQ(reader.numbers().at("zz"), 3);
  EXPECT_EQ(reader.numbers().at("epoch"), 2);
  EXPECT_EQ(reader.num_left_out() + reader.numbers().size(), 1204U);
}

TEST(PrintedDict, IsReadInOnePass) {
  std::string deep(1 << 20, '(');
  EXPECT_EQ(Read(absl::StrCat("{'a': ", deep)), "open");
  EXPECT_EQ(Read(absl::StrCat("{'a': f", deep, std::string(1 << 20, ')'), "}")), "");
}

}  // namespace
}  // namespace hpo::command
