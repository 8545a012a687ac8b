// The fields of what a worker tells of itself.
#pragma once

#include "common/models/model_fields.h"
#include "common/protocol/worker_facts.h"

namespace hpo {

template <>
struct NamesOf<PreflightAbility> {
  static constexpr const char* kNames[] = {"none", "if_asked", "always"};
  static constexpr char kMeans[] = "an ability to dry-run";
};

void VisitFields(Is<ModelFacts> auto& facts, auto visit) {
  visit({"name"}, facts.name);
  visit({"shape"}, facts.shape);
  visit({"digest"}, facts.digest);
  visit({"tokenizer_digest", kAlways}, facts.tokenizer_digest);
  visit({"has_weights", kAlways}, facts.has_weights);
}

void VisitFields(Is<DeviceProfile> auto& device, auto visit) {
  visit({"kind"}, device.kind);
  visit({"name", kAlways}, device.name);
  visit({"uuid", kAlways}, device.uuid);
  visit({"driver", kAlways}, device.driver);
  visit({"total"}, device.total);
  visit({"base", kAlways}, device.base);
  visit({"workspace", kAlways}, device.workspace);
  visit({"source", kAlways}, device.source);
  visit({"torch_build", kAlways}, device.torch_build);
  visit({"capability", kAlways}, device.capability);
  visit({"attention", kAlways}, device.attention);
  visit({"allocator", kAlways}, device.allocator);
  visit({"threads", kAlways}, device.threads);
  visit({"multiprocessors", kAlways}, device.multiprocessors);
  visit({"threads_per_multiprocessor", kAlways}, device.threads_per_multiprocessor);
}

void VisitFields(Is<ProcessIdentity> auto& process, auto visit) {
  visit({"boot_id"}, process.boot_id);
  visit({"namespaces"}, process.namespaces);
  visit({"pid"}, process.pid);
  visit({"start_ticks"}, process.start_ticks);
}

void VisitFields(Is<WorkerFacts> auto& facts, auto visit) {
  visit({"worker"}, facts.worker);
  visit({"instance_key"}, facts.instance_key);
  visit({"version", kAlways}, facts.version);
  visit({"torch_build", kAlways}, facts.torch_build);
  visit({"trainer", kAlways}, facts.trainer);
  visit({"plans", kAlways}, facts.plans);
  visit({"device"}, facts.device);
  visit({"capacity"}, facts.capacity);
  visit({"models", kAlways}, facts.models);
  visit({"data_sets", kAlways}, facts.data_sets);
  visit({.key = "serves", .presence = kIfSaid, .wire = kNotSent}, facts.serves);
  visit({"process", kIfSaid}, facts.process);
  visit({.key = "preflight", .presence = kIfSaid, .wire = kNotSent}, facts.preflight);
  visit({"gpus", kIfSaid}, facts.gpus);
}

}  // namespace hpo
