// Tested by tests/cli/memory/memory_commands_test.cc.
#include "cli/memory/memory_group.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "cli/client/dry_run_package.h"
#include "cli/dryrun/study_dry_run.h"
#include "cli/dryrun/study_dry_run_words.h"
#include "cli/memory/memory_budget.h"
#include "cli/memory/memory_dataset.h"
#include "cli/memory/memory_explain.h"
#include "cli/memory/memory_fit.h"
#include "cli/memory/memory_plan.h"
#include "cli/memory/memory_space.h"
#include "cli/memory/memory_status.h"
#include "cli/memory/memory_table.h"
#include "cli/memory/server_verdict.h"
#include "common/command_line/bounds.h"
#include "common/command_line/exit_status.h"
#include "memory/offline/offline_card.h"

namespace hpo::cli {
namespace {

constexpr int kExitDoesNotFit = 3;

Action Verdict(std::function<absl::StatusOr<bool>(Session&)> action) {
  return [action = std::move(action)](Session& session) -> absl::StatusOr<int> {
    const absl::StatusOr<bool> fits = action(session);
    if (!fits.ok()) return fits.status();
    return *fits ? static_cast<int>(kExitOk) : kExitDoesNotFit;
  };
}

void SetExample(CLI::App& command, const std::string& example) {
  command.footer("\nExample:\n  " + example + "\n");
}

void AddDevice(CLI::App& command, memory::CardOptions& device, bool several) {
  CLI::Option* const card =
      command.add_option("--card", device.cards, "Memory of the GPU, such as 24GiB")
          ->required(device.cards.empty())
          ->allow_extra_args(false)
          ->type_name(several ? "SIZE,..." : "SIZE");
  if (!device.cards.empty()) card->capture_default_str();
  if (several) {
    card->delimiter(',');
  } else {
    card->expected(1);
  }
  command
      .add_option("--device", device.kind,
                  "cuda or cpu; for cpu, only the memory of tensors counts")
      ->check(OneOf({"cuda", "cpu"}))
      ->capture_default_str();
  command
      .add_option("--headroom", device.headroom,
                  "Memory to keep free [default: 2 %, at least 256 MiB; cpu: 0]")
      ->type_name("SIZE");
  command
      .add_option(
          "--base", device.base,
          "Memory of the CUDA context and libraries, as a worker measures it [default: 1.4GiB]")
      ->type_name("SIZE");
}

void AddTask(CLI::App& command, std::string& task) {
  command.add_option("--task", task, "Task of the model [default: text-classification]")
      ->check(OneOf({"text-classification", "language-modeling"}))
      ->type_name("NAME");
}

Action DeclareMemoryEstimate(CLI::App& estimate, std::string& /*study*/) {
  const auto options = std::make_shared<MemoryOptions>();
  const auto compare = std::make_shared<std::vector<std::string>>();
  SetExample(estimate,
             "hpo memory estimate model.name=roberta-large train.batch_size=48 --limit 24GiB");
  estimate.add_option("params", options->params, "Parameters of the configuration")
      ->type_name("NAME=VALUE");
  estimate
      .add_option("--compare", *compare,
                  "Parameters to change; the command shows the prediction before and after")
      ->type_name("NAME=VALUE");
  estimate
      .add_option("--worker", options->worker,
                  "Name of the worker [default: the one with the most memory]")
      ->type_name("NAME");
  estimate.add_option("--limit", options->limit, "Memory limit [default: the limit of the worker]")
      ->type_name("SIZE");
  return Verdict([options, compare](Session& session) {
    return compare->empty() ? EstimateMemory(session, *options)
                            : CompareMemory(session, *options, *compare);
  });
}

Action DeclareMemoryExplain(CLI::App& explain, std::string& /*study*/) {
  const auto number = std::make_shared<int64_t>();
  SetExample(explain, "hpo memory explain 12");
  explain.add_option("trial", *number, "Number of the trial")
      ->type_name("N")
      ->required()
      ->check(AtLeast(0));
  return Plain(
      [number](Session& session) { return ExplainTrialMemory(session, TrialNumber{*number}); });
}

Action DeclareMemoryStatus(CLI::App& status, std::string& /*study*/) {
  SetExample(status, "hpo memory status --output json");
  return Plain(ShowMemoryStatus);
}

Action DeclareMemoryFit(CLI::App& fit, std::string& /*study*/) {
  const auto options = std::make_shared<MemoryFitOptions>();
  options->lengths = {128, 256, 384, 512};
  SetExample(fit, "hpo memory fit --model bert-large-uncased --card 8GiB,16GiB,24GiB,80GiB");
  fit.add_option("--model", options->model, "Name of a model, or a config.json")
      ->required()
      ->type_name("NAME");
  fit.add_option("params", options->params,
                 "Other parameters, such as lora.rank=16 lora.base=nf4 memory.checkpoint_every=1")
      ->type_name("NAME=VALUE");
  fit.add_option("--lengths", options->lengths, "Sequence lengths, in tokens")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,...")
      ->check(Between(1, 1 << 20))
      ->capture_default_str();
  fit.add_option("--grad-accum", options->grad_accum, "Number of micro-batches per effective batch")
      ->type_name("N")
      ->check(Between(1, 1 << 20))
      ->capture_default_str();
  AddTask(fit, options->task);
  AddDevice(fit, options->device, /*several=*/true);
  return Verdict([options](Session& session) { return ShowMemoryFit(session, *options); });
}

Action DeclareMemorySpace(CLI::App& space, std::string& /*study*/) {
  const auto options = std::make_shared<MemorySpaceOptions>();
  SetExample(space, "hpo memory space criteria --card 8GiB,16GiB,24GiB");
  space
      .add_option(
          "file", options->file,
          "Study file or name of a preset, which need no server [default: the study that --study "
          "names]")
      ->type_name("STUDY.yaml");
  AddDevice(space, options->device, /*several=*/true);
  return Verdict([options](Session& session) { return ShowMemorySpace(session, *options); });
}

Action DeclareMemoryPlan(CLI::App& plan, std::string& /*study*/) {
  const auto options = std::make_shared<MemoryPlanOptions>();
  SetExample(plan,
             "hpo memory plan model.name=bert-large-uncased train.batch_size=48 \\\n"
             "    tok.max_length=480 --card 24GiB");
  plan.add_option("params", options->params, "Parameters of the configuration")
      ->type_name("NAME=VALUE")
      ->required();
  AddTask(plan, options->task);
  AddDevice(plan, options->device, /*several=*/false);
  return Verdict([options](Session& session) { return ShowMemoryPlan(session, *options); });
}

Action DeclareMemoryTable(CLI::App& table, std::string& /*study*/) {
  const auto options = std::make_shared<MemoryTableOptions>();
  SetExample(table, "hpo memory table examples/memory/criteria_24gb.csv --card 23.56GiB");
  table
      .add_option(
          "file", options->file,
          "CSV file with one configuration per line, and a header that names the parameters (- for "
          "standard input); a column note is copied to the output")
      ->type_name("FILE")
      ->required();
  AddTask(table, options->task);
  AddDevice(table, options->device, /*several=*/false);
  return Verdict([options](Session& session) { return ShowMemoryTable(session, *options); });
}

Action DeclareMemoryBudget(CLI::App& budget, std::string& /*study*/) {
  const auto options = std::make_shared<MemoryBudgetOptions>();
  SetExample(budget,
             "hpo memory budget model.name=Qwen/Qwen2.5-7B-Instruct lora.rank=128 \\\n"
             "    lora.targets=all-linear lora.base=bf16 train.precision=bf16 \\\n"
             "    memory.checkpoint_every=1 train.batch_size=2 train.grad_accum=8 \\\n"
             "    tok.max_length=2048 \\\n"
             "    --compare train.batch_size=1 train.grad_accum=16 tok.max_length=1536 \\\n"
             "    --card 24GiB");
  budget.add_option("params", options->params, "Parameters of the configuration")
      ->type_name("NAME=VALUE")
      ->required();
  budget
      .add_option("--compare", options->compare,
                  "Parameters to change; the command shows the memory before and after")
      ->type_name("NAME=VALUE");
  AddTask(budget, options->task);
  AddDevice(budget, options->device, /*several=*/false);
  return Verdict([options](Session& session) { return ShowMemoryBudget(session, *options); });
}

Action DeclareMemoryDataset(CLI::App& dataset, std::string& /*study*/) {
  const auto options = std::make_shared<MemoryDatasetOptions>();
  options->device.cards = {"16GiB"};
  SetExample(dataset, "hpo memory dataset train.jsonl --passes 6 --batch-size 4 --card 16GiB");
  const auto count = [&dataset](const std::string& name, int64_t& value, const std::string& help) {
    return dataset.add_option(name, value, help)->type_name("N")->check(Between(1, 1 << 20));
  };
  dataset.add_option("file", options->file, "Data file: JSON lines or CSV")
      ->type_name("FILE")
      ->required();
  dataset
      .add_option("--tokenizer", options->tokenizer,
                  "Folder of the model whose tokenizer counts the tokens [default: counts words]")
      ->type_name("MODEL_DIR");
  dataset
      .add_option("--model", options->model,
                  "Name of the model, or a config.json [default: the model of --tokenizer, or "
                  "bert-base-uncased]")
      ->type_name("NAME");
  dataset
      .add_option("--items", options->items_key,
                  "Field of a sample that lists its items [default: the first list of objects]")
      ->type_name("KEY");
  count("--batch-size", options->batch_size, "Number of samples per batch")->capture_default_str();
  count("--grad-accum", options->grad_accum, "Number of batches per effective batch")
      ->capture_default_str();
  count("--passes", options->passes,
        "Number of forward passes over a batch before its backward pass")
      ->capture_default_str();
  count("--max-length", options->max_length,
        "Number of tokens per input [default: that of the longest text, or 128]");
  count("--keep", options->keep_up_to,
        "Also show the memory without samples larger than this [default: 5 items, or the 99th "
        "percentile of the tokens]");
  AddDevice(dataset, options->device, /*several=*/false);
  return Verdict([options](Session& session) { return ShowMemoryDataset(session, *options); });
}

// Its words do not come this way (RunHpo), as what comes after the options is the program's: the
// options are named for the completion of words.
Action DeclareMemoryDryRun(CLI::App& dry_run, std::string& /*study*/) {
  for (const char* const name :
       {"--gpu,--card", "--count", "--steps", "--timeout", "--largest", "--allocator", "--context",
        "--readbacks", "--threads", "--stand-in", "--sample", "--parameters", "--jobs", "--seed"}) {
    dry_run.add_option(name);
  }
  for (const char* const name : {"--ample", "--json", "--show-output"}) dry_run.add_flag(name);
  SetExample(dry_run, "hpo memory dry-run --gpu a100-40gb -- python3 train.py --batch 32");
  return [](Session& session) {
    if (IsForStudy(session.forwarded)) return DryRunStudy(session);
    std::vector<std::string> words = session.forwarded;
    if (session.json) words.insert(words.begin(), "--json");
    return RunMemoryDryRun(words);
  };
}

}  // namespace

Command MemoryGroup() {
  using enum Access;
  return {
      .name = "memory",
      .help = "Predict the memory of configurations, and what fits on a GPU",
      .commands = {
          {"estimate", "Predict the memory of a configuration by class, and whether it fits",
           kReads, DeclareMemoryEstimate},
          {"fit", "Show the largest micro-batch per sequence length and GPU size (needs no server)",
           kReads, DeclareMemoryFit},
          {"space", "Show which part of a search space fits on each GPU, and what to remove",
           kReads, DeclareMemorySpace},
          {"plan", "Find the cheapest changes that make a configuration fit (needs no server)",
           kReads, DeclareMemoryPlan},
          {"table", "Predict the memory of each configuration in a CSV file (needs no server)",
           kReads, DeclareMemoryTable},
          {"budget", "Compare the memory of two configurations by class (needs no server)", kReads,
           DeclareMemoryBudget},
          {"dataset", "Predict the memory of a data file's batches, and how to reduce it", kReads,
           DeclareMemoryDataset},
          {"dry-run", "Run a PyTorch program on an emulated GPU for the memory it requires", kReads,
           DeclareMemoryDryRun},
          {"explain", "Explain why a trial fit or did not fit: predicted and measured bytes",
           kReads, DeclareMemoryExplain},
          {"status", "Show the memory of this machine and of its GPUs", kReads,
           DeclareMemoryStatus},
      }};
}

}  // namespace hpo::cli
