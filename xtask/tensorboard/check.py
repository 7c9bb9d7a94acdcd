"""Reads the event files of a run directory as TensorBoard does and compares them with metrics.jsonl.

    python -m pip install -r requirements.txt
    python check.py RUN_DIRECTORY

Three readers: the accumulator that scripts use, the multiplexer behind TensorBoard's web server, and the faster data
server, where there is a build of it for this system. Tags, steps and values must agree; values as single precision.
"""

import json
import logging
import pathlib
import sys
import time

import numpy as np
from tensorboard import version
from tensorboard.backend.event_processing import data_provider, event_accumulator, plugin_event_multiplexer
from tensorboard.context import RequestContext
from tensorboard.data import server_ingester
from tensorboard.util import grpc_util

GROUPS = {
    "local_loss": "loss",
    "train_loss": "loss",
    "test_loss": "loss",
    "test_accuracy": "accuracy",
    "rate": "training",
    "update_norm": "training",
    "mean_gain": "uplink",
    "noise_std": "uplink",
}
NOT_MEASURED = {"trial", "round", "diverged"}
ALL = 1_000_000_000  # this many points are never thinned out
PATIENCE = 10  # seconds that the data server may take
SHOWN = 10  # differences that are printed


def recorded(run):
    """The content of metrics.jsonl, as {(trial, tag, step): value}."""
    scalars = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        metrics = json.loads(line)
        trial, step = f"trial-{metrics['trial']:04}", metrics["round"]
        for name in metrics.keys() - NOT_MEASURED:
            tag = f"{GROUPS.get(name, 'no-group')}/{name}"
            scalars[trial, tag, step] = np.float32(metrics[name])
    return scalars


def by_accumulator(events):
    scalars = []
    for directory in sorted(events.iterdir()):
        reader = event_accumulator.EventAccumulator(str(directory), {event_accumulator.SCALARS: 0})
        reader.Reload()
        for tag in reader.Tags()[event_accumulator.SCALARS]:
            scalars += [((directory.name, tag, event.step), event.value) for event in reader.Scalars(tag)]
    return scalars


def by_provider(provider):
    runs = provider.read_scalars(RequestContext(), experiment_id="", plugin_name="scalars", downsample=ALL)
    return [
        ((run, tag, point.step), point.value)
        for run, tags in runs.items()
        for tag, points in tags.items()
        for point in points
    ]


def by_multiplexer(events):
    reader = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"scalars": 0})
    reader.AddRunsFromDirectory(str(events))
    reader.Reload()
    return by_provider(data_provider.MultiplexerDataProvider(reader, str(events)))


def by_data_server(events, count):
    server = server_ingester.SubprocessServerDataIngester(
        server_ingester.get_server_binary(),
        str(events),
        reload_interval=0,
        channel_creds_type=grpc_util.ChannelCredsType.LOCAL,
        samples_per_plugin={"scalars": 0},
    )
    server.start()
    # It answers before it has read everything.
    end = time.monotonic() + PATIENCE
    while True:
        scalars = by_provider(server.data_provider)
        if len(scalars) >= count or time.monotonic() > end:
            return scalars
        time.sleep(0.1)


def differences(expected, scalars):
    found = dict(scalars)
    if len(found) < len(scalars):
        yield f"{len(scalars) - len(found)} values stand twice"
    for key in sorted(expected.keys() | found.keys()):
        said, read = expected.get(key), found.get(key)
        name = "{}, {}, round {}".format(*key)
        if read is None:
            yield f"{name}: metrics.jsonl has {said}, TensorBoard finds nothing"
        elif said is None:
            yield f"{name}: metrics.jsonl has no value, TensorBoard finds {read}"
        elif np.float32(read) != said:
            yield f"{name}: metrics.jsonl has {said}, TensorBoard finds {np.float32(read)}"


def agrees(reader, expected, scalars):
    wrong = list(differences(expected, scalars))
    if not wrong:
        print(f"  {reader:12} {len(scalars)} values agree")
        return True
    print(f"  {reader:12} {len(wrong)} differ")
    for difference in wrong[:SHOWN]:
        print(f"    {difference}")
    if len(wrong) > SHOWN:
        print("    …")
    return False


def main():
    logging.disable(logging.WARNING)
    run = pathlib.Path(sys.argv[1])
    events, expected = run / "tb", recorded(run)
    if not expected:
        sys.exit("metrics.jsonl holds no values")
    print(f"TensorBoard {version.VERSION} reads tb/, beside {len(expected)} values of metrics.jsonl")
    right = [
        agrees("accumulator", expected, by_accumulator(events)),
        agrees("multiplexer", expected, by_multiplexer(events)),
    ]
    try:
        right.append(agrees("data server", expected, by_data_server(events, len(expected))))
    except server_ingester.NoDataServerError:
        print("  data server  not there on this system")
    sys.exit(not all(right))


if __name__ == "__main__":
    main()
