#!/usr/bin/env python3
"""Writes tests/golden/event_file.tfevents: what TensorBoard's own writer makes of the trial that
tests/cli/commands/exchange/event_file_test.cc describes. Needs the package tensorboard (written with 2.21.0)."""

import io
import pathlib

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/event_file.tfevents"
START = 1_700_000_005.0


def scalars(step, metrics):
    values = [summary_pb2.Summary.Value(tag=tag, simple_value=value) for tag, value in metrics]
    return event_pb2.Event(wall_time=START + step / 1000, step=step,
                           summary=summary_pb2.Summary(value=values))


def hparams(tag, step, data):
    metadata = summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(
        plugin_name="hparams", content=data.SerializeToString(deterministic=True)))
    return event_pb2.Event(wall_time=START + step / 1000, step=step, summary=summary_pb2.Summary(
        value=[summary_pb2.Summary.Value(tag=tag, metadata=metadata)]))


def start():
    data = plugin_data_pb2.HParamsPluginData()
    info = data.session_start_info
    info.hparams["flag"].bool_value = True
    info.hparams["model.name"].string_value = "bert"
    info.hparams["train.batch_size"].number_value = 16
    info.hparams["train.lr"].number_value = 3e-5
    info.group_name = "criteria#12"
    info.start_time_secs = START
    return data


def end():
    data = plugin_data_pb2.HParamsPluginData()
    data.session_end_info.status = 1
    data.session_end_info.end_time_secs = START + 60
    return data


def main():
    out = io.BytesIO()
    writer = RecordWriter(out)
    events = [
        event_pb2.Event(wall_time=START, step=0, file_version="brain.Event:2"),
        hparams("_hparams_/session_start_info", 0, start()),
        scalars(10, [("loss", 1.5), ("macro_f1", 0.25)]),
        scalars(20, [("loss", float("nan")), ("macro_f1", 0.5)]),
        scalars(20, [("result/macro_f1", 0.5)]),
        hparams("_hparams_/session_end_info", 20, end()),
    ]
    for event in events:
        writer.write(event.SerializeToString(deterministic=True))
    GOLDEN.write_bytes(out.getvalue())


if __name__ == "__main__":
    main()
